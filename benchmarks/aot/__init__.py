"""Size and speed of exports on microcontrollers, compared with other C code generators."""
