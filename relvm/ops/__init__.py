"""Every operator, under its name.  Importing this module declares them all."""

from relvm.ops.arithmetic import add, divide, maximum, minimum, multiply, power, subtract
