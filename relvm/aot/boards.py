"""Boards with microcontrollers: their memory, processors, compilers, and names in other tools.

Sizes are those that programs can use: without the memory of a boot loader, and only the region in which the linker
scripts of the Arduino cores or of the manufacturers place variables.
"""

from __future__ import annotations

from relvm.data_classes import value_record
from relvm.errors import RelvmNameError, RelvmUnsupportedError, near_matches

_KB = 1 << 10
_ARM = "arm-none-eabi-"
_M0 = ("-mcpu=cortex-m0plus", "-mthumb")
_M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16")
_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")
_M33 = ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=softfp")
_HARD, _SOFT = ("-mfloat-abi=hard",), ("-mfloat-abi=softfp",)


@value_record
class Board:
    """A board.

    Attributes
    ----------
    name, title
        The name in commands, and the name that its manufacturer uses.
    processor
        The microcontroller and its processor.
    flash_bytes, ram_bytes
        The memory for a program: for its code and constants, and for its variables and stack.
    tools
        The prefix of the names of the C compiler and the binary utilities.
    flags
        Options of the C compiler that select the processor.
    arduino
        The fully qualified board name (FQBN) in the Arduino tools, or "" if there is no core.
    platformio
        The platform and the board in PlatformIO, or ("", "") if there is no such board.
    constants_section
        The section of the linker script for constants that stay in flash, or "" if all constants do.
    refusal
        The reason why exports cannot run on this board, or "".
    """

    name: str
    title: str
    processor: str
    flash_bytes: int
    ram_bytes: int
    tools: str
    flags: tuple[str, ...]
    arduino: str = ""
    platformio: tuple[str, str] = ("", "")
    constants_section: str = ""
    refusal: str = ""


_AVR = "its 8-bit processor has 16-bit int and pointers, and a double of 4 bytes"

BOARDS = (
    Board(
        "uno_r4",
        "Arduino Uno R4",
        "RA4M1, Cortex-M4F",
        256 * _KB - 16 * _KB,
        32 * _KB,
        _ARM,
        _M4 + _HARD,
        "arduino:renesas_uno:minima",
        ("renesas-ra", "uno_r4_minima"),
    ),
    Board(
        "nano33ble",
        "Arduino Nano 33 BLE",
        "nRF52840, Cortex-M4F",
        960 * _KB,
        256 * _KB,
        _ARM,
        _M4 + _SOFT,
        "arduino:mbed_nano:nano33ble",
        ("nordicnrf52", "nano33ble"),
    ),
    Board(
        "nano_rp2040",
        "Arduino Nano RP2040 Connect",
        "RP2040, Cortex-M0+",
        16384 * _KB,
        264 * _KB,
        _ARM,
        _M0,
        "arduino:mbed_nano:nanorp2040connect",
        ("raspberrypi", "nanorp2040connect"),
    ),
    Board(
        "pico",
        "Raspberry Pi Pico",
        "RP2040, Cortex-M0+",
        2048 * _KB,
        256 * _KB,
        _ARM,
        _M0,
        "rp2040:rp2040:rpipico",
        ("raspberrypi", "pico"),
    ),
    Board(
        "pico2",
        "Raspberry Pi Pico 2",
        "RP2350, Cortex-M33",
        4096 * _KB,
        512 * _KB,
        _ARM,
        _M33,
        "rp2040:rp2040:rpipico2",
    ),
    Board(
        "esp32",
        "ESP32 DevKit",
        "ESP32, Xtensa LX6",
        1280 * _KB,
        320 * _KB,
        "xtensa-esp32-elf-",
        ("-mlongcalls",),
        "esp32:esp32:esp32",
        ("espressif32", "esp32dev"),
    ),
    Board(
        "esp32s3",
        "ESP32-S3 DevKit",
        "ESP32-S3, Xtensa LX7",
        1280 * _KB,
        320 * _KB,
        "xtensa-esp32s3-elf-",
        ("-mlongcalls",),
        "esp32:esp32:esp32s3",
        ("espressif32", "esp32-s3-devkitc-1"),
    ),
    Board(
        "esp32c3",
        "ESP32-C3 DevKit",
        "ESP32-C3, RV32IMC",
        1280 * _KB,
        320 * _KB,
        "riscv32-esp-elf-",
        ("-march=rv32imc", "-mabi=ilp32"),
        "esp32:esp32:esp32c3",
        ("espressif32", "esp32-c3-devkitm-1"),
    ),
    Board(
        "teensy41",
        "Teensy 4.1",
        "i.MX RT1062, Cortex-M7",
        7936 * _KB,
        512 * _KB,
        _ARM,
        _M7,
        "teensy:avr:teensy41",
        ("teensy", "teensy41"),
        constants_section=".progmem",
    ),
    Board(
        "nucleo_f411re",
        "STM32 Nucleo F411RE",
        "STM32F411, Cortex-M4F",
        512 * _KB,
        128 * _KB,
        _ARM,
        _M4 + _HARD,
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F411RE",
        ("ststm32", "nucleo_f411re"),
    ),
    Board(
        "nucleo_l476rg",
        "STM32 Nucleo L476RG",
        "STM32L476, Cortex-M4F",
        1024 * _KB,
        96 * _KB,
        _ARM,
        _M4 + _HARD,
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_L476RG",
        ("ststm32", "nucleo_l476rg"),
    ),
    Board(
        "nucleo_h743zi",
        "STM32 Nucleo H743ZI",
        "STM32H743, Cortex-M7",
        2048 * _KB,
        512 * _KB,
        _ARM,
        _M7,
        "STMicroelectronics:stm32:Nucleo_144:pnum=NUCLEO_H743ZI2",
        ("ststm32", "nucleo_h743zi"),
    ),
    Board(
        "microbit_v2",
        "BBC micro:bit v2",
        "nRF52833, Cortex-M4F",
        512 * _KB,
        128 * _KB,
        _ARM,
        _M4 + _HARD,
        "sandeepmistry:nRF5:BBCmicrobitV2",
        ("nordicnrf52", "bbcmicrobit_v2"),
    ),
    Board(
        "nrf52840dk",
        "Nordic nRF52840 DK",
        "nRF52840, Cortex-M4F",
        1024 * _KB,
        256 * _KB,
        _ARM,
        _M4 + _HARD,
        "adafruit:nrf52:pca10056",
        ("nordicnrf52", "nrf52840_dk"),
    ),
    Board(
        "uno",
        "Arduino Uno",
        "ATmega328P, AVR",
        32256,
        2 * _KB,
        "avr-",
        ("-mmcu=atmega328p",),
        "arduino:avr:uno",
        ("atmelavr", "uno"),
        refusal=_AVR,
    ),
    Board(
        "mega",
        "Arduino Mega 2560",
        "ATmega2560, AVR",
        248 * _KB,
        8 * _KB,
        "avr-",
        ("-mmcu=atmega2560",),
        "arduino:avr:mega",
        ("atmelavr", "megaatmega2560"),
        refusal=_AVR,
    ),
)


def find_board(name: str) -> Board:
    """Return a board by its name.

    Raises
    ------
    RelvmNameError
        There is no board of this name.
    RelvmUnsupportedError
        Exports cannot run on this board.
    """
    boards = {board.name: board for board in BOARDS}
    if name not in boards:
        raise RelvmNameError(f"board: no board {name}{near_matches(name, boards)}; `relvm boards` lists the boards")
    board = boards[name]
    if board.refusal:
        needed = "exports require pointers of 32 bits and a double of 8 bytes"
        raise RelvmUnsupportedError(
            f"board {name}: {board.title} is not supported: {board.refusal}, but {needed}; choose another board "
            "(`relvm boards`)"
        )
    return board
