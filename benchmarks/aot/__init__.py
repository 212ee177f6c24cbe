"""Size and speed of exports on microcontrollers, beside other generators of C."""
