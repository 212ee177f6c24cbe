"""The command `relvm`: its subcommands and their options.  Each subcommand is implemented in a file of its name."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Sequence

from relvm import __version__
from relvm.cli.arguments import Number, Parser, Words, file_name, picture_file
from relvm.cli.output import NoReaderError, complain, flush, note, prepare_streams, set_verbosity
from relvm.cli.overview import EXAMPLES, RootParser, print_help
from relvm.cli.shell_terms import in_shell_terms
from relvm.errors import RelvmError, RelvmFileError, message_with_notes

PICTURES = ("dataflow", "calls", "memory", "liveness")
# The stages of explore.explore: the input module, the module after each pass, and the forms of the code.
_PASSES = (
    *("infer_types", "to_anf", "check_sizes", "inline", "lower_string_moves", "promote_half_floats"),
    *("constant_folding", "canonicalize", "cse", "dce", "lambda_lifting", "fold_scales", "pack_weights"),
    *("fuse_attention", "decompose", "fuse_ops", "share_kernels", "lower_to_kernels", "plan_memory"),
    *("lower_shapes", "list_append_in_place", "insert_kills"),
)
STAGES = ("given", *_PASSES, "routine", "bytecode", "kernels", "c", "assembly")
QUANTIZATION_MODES = ("dynamic", "static", "int8-weights", "int4-weights")  # relvm.quantization.MODES
RUNTIMES = ("onnxruntime", "openvino")  # the keys of relvm.cli.bench.RUNTIMES
COMPARED_MODES = ("reference", "bytecode", "compiled", "onnxruntime")  # relvm.explore.compare.run
_MAX_INTEGER = (1 << 63) - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    The status is 0 for success, and 130 if the command was interrupted.  It is 1 for an error (one line on standard
    error), for a difference found by `compare`, and if `map` fails for a file.  Arguments that argparse rejects end the
    process with status 2.
    """
    prepare_streams()
    options = argparse.Namespace()
    try:
        try:
            parser = make_parser()
            if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions (relvm completion)
                import argcomplete

                argcomplete.autocomplete(parser)
            options = parser.parse_args(arguments)
            set_verbosity(options.verbose, options.quiet)
            return options.run(options)
        finally:
            flush()
    except NoReaderError:
        return 0
    except RelvmError as error:
        described = f"{type(error).__name__}: {in_shell_terms(message_with_notes(error), vars(options))}"
        complain(_file_error(error) if isinstance(error, RelvmFileError) else described)
        return 1
    except OSError as error:
        complain(_file_error(error))
        return 1
    except UnicodeDecodeError as error:
        complain(f"the file must be UTF-8 text: {error}")
        return 1
    except MemoryError as error:
        complain(f"not enough memory: {error}".removesuffix(": "))
        return 1
    except KeyboardInterrupt:
        note("interrupted")
        return 130


def _file_error(error: OSError) -> str:
    return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error)


def make_parser() -> argparse.ArgumentParser:
    parser = RootParser(prog="relvm")
    parser.add_argument("--version", action="version", version=f"relvm {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    _add_run(commands)
    _add_run_python(commands)
    _add_info(commands)
    _add_bench(commands)
    _add_map(commands)
    _add_compile(commands)
    _add_export(commands)
    _add_quantize(commands)
    _add_show(commands)
    _add_explore(commands)
    _add_compare(commands)
    _add_debug(commands)
    _add_verify(commands)
    for name, help_text in (
        ("ops", "the operators"),
        ("builtins", "the runtime's own functions"),
        ("opcodes", "the instruction set"),
    ):
        command = commands.add_parser(name, help=f"list {help_text}, or describe some of them")
        command.add_argument("names", nargs="*", metavar="NAME", help="describe only these")
        _add_json(command)
        command.set_defaults(run=_imported_at_call("list_tables.print_table"), table=name)
    _add_cache(commands)
    _add_fmt(commands)
    _add_lsp(commands)
    _add_dap(commands)
    _add_config(commands)
    _add_completion(commands)
    _add_help(commands, parser)
    for name, command in commands.choices.items():
        _add_verbosity(command)
        command.example = EXAMPLES[name]
    parser.set_defaults(run=print_help, root=parser, topic=None, verbose=False, quiet=False)
    return parser


def _add_help(commands, root: Parser) -> None:
    command = commands.add_parser("help", help="describe a command and its options")
    parsers = commands.choices
    command.add_argument("topic", nargs="?", metavar="COMMAND", choices=parsers, help="default: an overview")
    command.set_defaults(run=print_help, parsers=parsers)


def _add_verbosity(command: argparse.ArgumentParser) -> None:
    amount = command.add_mutually_exclusive_group()
    amount.add_argument("-v", "--verbose", action="store_true", help="also print what the library logs")
    amount.add_argument("-q", "--quiet", action="store_true", help="print results and errors only")


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_info(commands) -> None:
    command = commands.add_parser("info", help="print a model's inputs, outputs, operators and parameters")
    what = "an .onnx model, a .relvm file, or an executable (.rvm, .so)"
    command.add_argument("models", type=file_name, nargs="+", metavar="MODEL", help=what)
    _add_model_options(command)
    command.add_argument("--function", default="main", help="function of --operations (default: main)")
    command.add_argument(
        "--operations", action="store_true", help="also run the model and count its arithmetic operations"
    )
    _add_inputs(command)
    _add_json(command)
    command.add_argument("--exec-mode", choices=("bytecode", "compiled", "auto"), help="mode of --operations")
    _add_trust_native(command)
    command.set_defaults(run=_imported_at_call("info.show_info"))


def _add_bench(commands) -> None:
    command = commands.add_parser("bench", help="time a model on random inputs, beside other runtimes")
    _add_model(command, "an .onnx model, a .relvm file, or an executable (.rvm, .so)")
    command.add_argument(
        "--against", action=Words, words=RUNTIMES, metavar="RUNTIME,...", help="onnxruntime, openvino, or both"
    )
    command.add_argument("--function", default="main", help="function to run (default: main)")
    command.add_argument(
        "--seconds",
        action=Number,
        type=float,
        least=0.001,
        most=86_400,
        default=2.0,
        metavar="S",
        help="time to spend on each runtime (default: 2)",
    )
    command.add_argument(
        "--threads", action=Number, type=int, least=1, most=256, metavar="N", help="threads (default: all processors)"
    )
    _add_inputs(command)
    command.add_argument(
        "--exec-mode", choices=("bytecode", "compiled", "auto"), help="default: auto, timed as native code"
    )
    _add_json(command)
    _add_trust_native(command)
    command.set_defaults(run=_imported_at_call("bench.bench"))


def _add_fmt(commands) -> None:
    command = commands.add_parser("fmt", help="format .relvm files in place: indentation, spaces and blank lines")
    command.add_argument("files", nargs="+", metavar="FILE", help=".relvm files, or - for standard input")
    command.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file would change")
    command.set_defaults(run=_imported_at_call("fmt.format_files"))


def _add_lsp(commands) -> None:
    command = commands.add_parser(
        "lsp",
        help="serve an editor: errors, types, definitions, completion and formatting of .relvm files",
        description="Speak the Language Server Protocol on the standard streams. Editors start this command themselves."
        " It needs the package pygls: pip install 'relvm[editor]'.",
    )
    command.set_defaults(run=_imported_at_call("lsp.serve_editor"))


def _add_dap(commands) -> None:
    command = commands.add_parser(
        "dap",
        help="let an editor step through a program",
        description="Speak the Debug Adapter Protocol on the standard streams. Editors start this command themselves.",
    )
    command.set_defaults(
        run=_imported_at_call("dap.serve_debugger"),
        parse_debug_options=lambda words: make_parser().parse_args(["debug", *words]),
    )


def _add_config(commands) -> None:
    command = commands.add_parser(
        "config",
        help="print what a C program needs to embed the runtime",
        description="Print paths and options for C programs that embed the runtime. For the compiler: cc program.c "
        "$(relvm config --cflags --libs). For CMake: cmake -Drelvm_DIR=$(relvm config --cmake-dir) ...; the target is "
        "relvm::relvm. Without an option, everything is printed.",
    )
    command.add_argument("--include-dir", action="store_true", help="directory of relvm.h")
    command.add_argument("--library", action="store_true", help="path of the static library")
    command.add_argument("--cmake-dir", action="store_true", help="directory of relvmConfig.cmake")
    command.add_argument("--cflags", action="store_true", help="options for the compiler")
    command.add_argument("--libs", action="store_true", help="options for the linker")
    command.add_argument("--version", action="store_true", help="version of relvm")
    _add_json(command)
    command.set_defaults(run=_imported_at_call("config.print_config"))


def _add_completion(commands) -> None:
    command = commands.add_parser(
        "completion",
        help="print code that completes commands and options in a shell",
        description='Print code for a shell. For bash: eval "$(relvm completion bash)"',
    )
    command.add_argument("shell", choices=("bash", "zsh", "fish"))
    command.set_defaults(run=_imported_at_call("completion.print_completion"))


def _add_run_python(commands) -> None:
    command = commands.add_parser(
        "run-python",
        help="run a Python program that imports onnxruntime, on relvm",
        description="Run a Python program in which `import onnxruntime` imports relvm.onnxruntime.",
    )
    command.add_argument("--as-onnxruntime", action="store_true", required=True, help="replace onnxruntime by relvm")
    command.add_argument("-m", action="store_true", dest="is_module", help="PROGRAM is the name of a module")
    command.add_argument("program", metavar="PROGRAM", help="a Python file")
    command.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the program")
    command.set_defaults(run=_imported_at_call("run_python.run_python"))


def _add_cache(commands) -> None:
    command = commands.add_parser("cache", help="show the folder and size of the build cache, or clear it")
    command.add_argument("--clear", action="store_true", help="delete the cached files")
    _add_json(command)
    command.set_defaults(run=_imported_at_call("cache.show_cache"))


def _add_model(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("model", type=file_name, metavar="MODEL", help=what)
    _add_model_options(command)


def _add_model_options(command: argparse.ArgumentParser) -> None:
    _add_dim(command)
    _add_target(command)
    _add_weights(command)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--target",
        default="auto",
        help='how kernels run: c, compiled for this processor; x86-64-v3 (or another level) or "c -march=NAME", '
        "compiled for another one; bytecode, without a compiler; numpy, the NumPy implementations; auto (default), "
        "c if there is a compiler and bytecode otherwise",
    )
    command.add_argument("--unfused", action="store_true", help="compile one kernel for each operator")


def _add_dim(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="set a symbolic dimension of an ONNX model: a size, bounds (batch=1..32), or ? if the inputs that share "
        "it may have different sizes; for other models, the size in random inputs",
    )


def _add_weights(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--weights",
        type=file_name,
        metavar="FILE.safetensors",
        help="constants in place of initializers and inputs of an ONNX model, or of parameters in a .relvm file",
    )


def _add_inputs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="read an input from a file, or give a number (NAME=NUMBER); repeatable",
    )
    command.add_argument(
        "--random",
        action="store_true",
        help="generate the other inputs at random, and choose the sizes that --dim does not set",
    )
    command.add_argument("--seed", action=Number, type=int, least=0, default=0, help="seed of --random (default: 0)")


def _add_trust_native(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--trust-native",
        action="store_true",
        help="run native code in the executable; only for files from a source that you trust",
    )


def _add_build_limits(command: argparse.ArgumentParser) -> None:
    for option, read, least, most, metavar, what in (
        ("--limit-seconds", float, 1e-9, 9_000_000_000, "S", "takes longer"),
        ("--limit-bytes", int, 1 << 20, _MAX_INTEGER, "N", "needs more memory"),
    ):
        text = f"end the import and build of a model if it {what}"
        command.add_argument(option, action=Number, type=read, least=least, most=most, metavar=metavar, help=text)


def _add_limits(command: argparse.ArgumentParser) -> None:
    for option, read, least, most, metavar, what in (
        ("--max-seconds", float, 1e-9, 9_000_000_000, "S", "takes longer"),
        ("--max-bytes", int, 1, _MAX_INTEGER, "N", "allocates more"),
        ("--max-steps", int, 1, _MAX_INTEGER, "N", "takes more steps (calls and jumps back)"),
    ):
        command.add_argument(
            option, action=Number, type=read, least=least, most=most, metavar=metavar, help=f"end a run that {what}"
        )


def _add_run(commands) -> None:
    command = commands.add_parser("run", help="run a model")
    _add_model(command, "an .onnx model, a .relvm file, or an executable (.rvm, .so)")
    command.add_argument("--function", default="main", help="function to run (default: main)")
    _add_inputs(command)
    command.add_argument(
        "--exec-mode",
        choices=("bytecode", "compiled", "auto"),
        help="default: auto, which compiles native code during long runs, and uses what is cached; with --target: "
        "bytecode",
    )
    command.add_argument("-o", "--output", type=file_name, metavar="OUT.npz", help="save the outputs under their names")
    command.add_argument(
        "--repeat",
        action=Number,
        type=int,
        least=1,
        default=1,
        metavar="N",
        help="run N times and print the median time",
    )
    command.add_argument("--profile", action="store_true", help="run once more and print the time of each function")
    command.add_argument(
        "--profile-kernels",
        action="store_true",
        help="--profile, with the time of each instruction of kernels; implies --target bytecode",
    )
    command.add_argument(
        "--trace",
        type=file_name,
        metavar="OUT.json",
        help="run once more and save the time of each call, for Perfetto (ui.perfetto.dev)",
    )
    command.add_argument(
        "--timeline",
        type=file_name,
        metavar="OUT.html",
        help="run once more and write an HTML page of all stages with the time of each call",
    )
    command.add_argument(
        "--roofline",
        nargs="?",
        const="",
        type=picture_file,
        metavar="OUT.svg",
        help="run once more and compare each kernel with the limits of this machine: print a table, or draw it",
    )
    command.add_argument(
        "--graph",
        type=file_name,
        metavar="OUT.html",
        help="run once more and write an HTML page of the dataflow graph, colored by the time of each kernel",
    )
    _add_limits(command)
    _add_build_limits(command)
    _add_trust_native(command)
    _add_json(command)
    command.set_defaults(run=_imported_at_call("run.run"))


def _add_map(commands) -> None:
    command = commands.add_parser("map", help="run a model on many files, in several processes or on a Dask cluster")
    _add_model(command, "an .onnx model, a .relvm file, or an executable (.rvm, .so)")
    command.add_argument("--function", default="main", help="function to run (default: main)")
    command.add_argument(
        "--inputs",
        required=True,
        type=file_name,
        metavar="FILES",
        help="folder of .npy and .npz files, or a quoted pattern: 'in/*.npy'; an .npz file holds inputs by name",
    )
    command.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="FOLDER",
        help="folder for one .npz file per input; existing files are kept, so an interrupted run can be resumed",
    )
    command.add_argument("--overwrite", action="store_true", help="delete the .npz files of an earlier run in --output")
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        action=Number,
        type=int,
        least=1,
        most=4096,
        metavar="N",
        help="processes on this machine (default: one per processor)",
    )
    where.add_argument("--scheduler", metavar="ADDRESS", help="use a running Dask cluster: tcp://host:8786")
    command.add_argument(
        "--threads",
        action=Number,
        type=int,
        least=1,
        most=256,
        default=1,
        metavar="N",
        help="kernel threads of each worker (default: 1)",
    )
    command.add_argument(
        "--retries",
        action=Number,
        type=int,
        least=0,
        most=_MAX_INTEGER,
        default=2,
        metavar="N",
        help="times to retry a file after a lost worker or an error outside of the model (default: 2); with "
        "--scheduler the cluster's own setting counts lost workers",
    )
    command.add_argument("--exec-mode", choices=("bytecode", "compiled"), help="default: bytecode")
    _add_limits(command)
    _add_build_limits(command)
    _add_trust_native(command)
    command.set_defaults(run=_imported_at_call("map.map_model"))


def _add_compile(commands) -> None:
    command = commands.add_parser("compile", help="build a model and save the executable")
    _add_model(command, "an .onnx model or a .relvm file")
    command.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="MODEL.rvm",
        help="file to write; .so makes a shared library for C programs",
    )
    command.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode")
    _add_build_limits(command)
    command.add_argument(
        "--debug", action="store_true", help="add source places, and stops in compiled functions, for relvm debug"
    )
    command.add_argument(
        "--portable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="include the program without native code, for other processors and for users who do not trust the file",
    )
    command.set_defaults(run=_imported_at_call("compile.compile_model"))


def _add_export(commands) -> None:
    command = commands.add_parser(
        "export", help="write a model as C sources without a virtual machine, or as a library"
    )
    command.add_argument("model", type=file_name, metavar="MODEL", help="an .onnx model or a .relvm file")
    _add_dim(command)
    _add_weights(command)
    command.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="PATH",
        help="folder to build with `make`, an archive of it (.tar), or a library (.so, with --runtime hosted)",
    )
    command.add_argument(
        "--function", default="main", help="function to export, with the functions that it calls (default: main)"
    )
    command.add_argument("--name", default="model", help="prefix of every C name (default: model)")
    command.add_argument(
        "--interface", choices=("c", "packed"), help="c: structs of pointers; packed: arrays of values"
    )
    command.add_argument(
        "--unpacked", action="store_true", help="pass pointers and sizes to kernels, instead of tensors"
    )
    command.add_argument("--runtime", choices=("bare", "hosted"), default="bare", help="default: bare")
    command.add_argument(
        "--alignment", type=int, default=16, metavar="BYTES", help="alignment of tensors (default: 16)"
    )
    command.add_argument(
        "--pool",
        action="append",
        default=[],
        metavar="NAME[=BYTES]",
        help="memory pool, and its largest size; repeatable, preferred pools first",
    )
    command.add_argument("--constants-limit", type=int, metavar="BYTES", help="largest total size of the constants")
    command.add_argument(
        "--workspace", choices=("static", "caller"), help="allocate pools statically, or take them from the caller"
    )
    command.add_argument(
        "--favour", choices=("memory", "speed"), help="whether kernels save memory or time (default with bare: memory)"
    )
    command.add_argument(
        "--show", choices=("storage", "lowered", "placement"), help="print this stage and write no files"
    )
    command.add_argument(
        "--draw", type=file_name, metavar="FILE.svg", help="also draw the memory placement (or .png, .pdf)"
    )
    _add_inputs(command)
    command.set_defaults(run=_imported_at_call("export.export"))


def _add_quantize(commands) -> None:
    command = commands.add_parser(
        "quantize",
        help="write an ONNX model with 8-bit or 4-bit integers, and report the errors",
        description="Quantize a model, and compare the outputs on the inputs of --calibration or --input, or on random "
        "ones. The result is standard ONNX. Modes dynamic and static need the package onnxruntime: pip install "
        "'relvm[quantize]'.",
    )
    command.add_argument("model", type=file_name, metavar="MODEL", help="an .onnx model")
    command.add_argument("-o", "--output", required=True, type=file_name, metavar="OUT.onnx", help="file to write")
    command.add_argument(
        "--mode",
        choices=QUANTIZATION_MODES,
        default="dynamic",
        help="dynamic (default): 8-bit weights and activations; static: the same with ranges from calibration data; "
        "int8-weights, int4-weights: only the weights",
    )
    command.add_argument(
        "--calibration",
        action="append",
        default=[],
        type=file_name,
        metavar="FILES",
        help="typical inputs: a folder of .npz files, each with an array for every input, or a quoted pattern, or a "
        "file; a .npy file is the first input; repeatable",
    )
    command.add_argument(
        "--block-size",
        action=Number,
        type=int,
        least=1,
        most=_MAX_INTEGER,
        default=32,
        metavar="N",
        help="weights that share a scale with int4-weights (default: 32)",
    )
    command.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE", help="a symbolic size of random inputs"
    )
    _add_inputs(command)
    _add_json(command)
    command.set_defaults(run=_imported_at_call("quantize.quantize_model"))


def _add_show(commands) -> None:
    command = commands.add_parser("show", help="print a model at a compilation stage")
    _add_model(command, "an .onnx model, a .relvm file, or (stages bytecode, kernels and c) an executable")
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--stage",
        choices=STAGES,
        default="infer_types",
        metavar="STAGE",
        help="given, a pass such as fuse_ops, routine, bytecode, kernels, c or assembly; default: infer_types",
    )
    what.add_argument("--picture", choices=PICTURES, help="print a diagram as text, or draw it with --output")
    what.add_argument("--memory", action="store_true", help="the same as --picture memory")
    what.add_argument(
        "--html", type=file_name, metavar="OUT.html", help="write an HTML page of all stages and the graph"
    )
    what.add_argument("--graph", type=file_name, metavar="OUT.html", help="write an HTML page of the dataflow graph")
    command.add_argument(
        "-o",
        "--output",
        type=file_name,
        metavar="OUT.svg",
        help="file for --picture (or .png, .pdf; .html, interactive, for dataflow and calls)",
    )
    command.add_argument(
        "--function",
        help="function of --picture (default: the first public one) or of --graph (default: all functions)",
    )
    command.add_argument(
        "--exec-mode", choices=("bytecode", "compiled"), default="bytecode", help="mode that --html shows"
    )
    command.add_argument("--full-constants", action="store_true", help="print large constants in full")
    command.set_defaults(run=_imported_at_call("show.show"))


def _add_explore(commands) -> None:
    command = commands.add_parser(
        "explore",
        help="edit a program in the browser, beside its stages",
        description="Serve a page with an editor and every compilation stage on 127.0.0.1, until Ctrl-C. It needs the "
        "packages starlette and uvicorn: pip install 'relvm[explore]'.",
    )
    what = "a .relvm file, or an .onnx model, whose text is read-only (default: an example)"
    command.add_argument("model", nargs="?", type=file_name, metavar="MODEL", help=what)
    _add_dim(command)
    _add_target(command)
    command.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode", help="default: bytecode")
    command.add_argument(
        "-o", "--output", type=file_name, metavar="OUT.relvm", help="file that the button Save of the page writes"
    )
    command.add_argument(
        "--port", action=Number, type=int, least=0, most=65535, default=0, metavar="N", help="default: a free port"
    )
    command.add_argument("--no-browser", action="store_true", help="print the address of the page, and open no browser")
    command.set_defaults(run=_imported_at_call("explore.explore"))


def _add_compare(commands) -> None:
    command = commands.add_parser("compare", help="run a model in several modes and find the first value that differs")
    _add_model(command, "an .onnx model or a .relvm file")
    command.add_argument("--function", default="main", help="function to run (default: main)")
    _add_inputs(command)
    command.add_argument(
        "--modes",
        action=Words,
        words=COMPARED_MODES,
        metavar="MODE,MODE...",
        help="modes to run, compared with the first: reference, bytecode, compiled, and onnxruntime for .onnx models, "
        "if ONNX Runtime is installed (default: all)",
    )
    command.add_argument(
        "--tolerance",
        action=Number,
        type=float,
        least=0,
        default=1e-4,
        help="largest difference of floats, relative to the largest element of the tensor (default: 1e-4)",
    )
    command.add_argument(
        "--all",
        action="store_true",
        help="print all values in the order of the program, not only the ten that differ most",
    )
    _add_json(command)
    command.set_defaults(run=_imported_at_call("compare.compare_model"))


def _add_debug(commands) -> None:
    command = commands.add_parser("debug", help="run a model step by step, with commands from standard input")
    _add_model(command, "an .onnx model, a .relvm file, or an executable (.rvm, .so)")
    command.add_argument("--function", default="main", help="function to run (default: main)")
    _add_inputs(command)
    command.add_argument("--exec-mode", choices=("bytecode", "compiled"), help="default: bytecode")
    _add_trust_native(command)
    command.set_defaults(run=_imported_at_call("debug.debug"))


def _add_verify(commands) -> None:
    command = commands.add_parser("verify", help="verify an executable without running any of it")
    command.add_argument("model", type=file_name, metavar="EXECUTABLE", help=".rvm, or a .so that relvm compile made")
    _add_json(command)
    command.set_defaults(run=_imported_at_call("verify.verify_file"))


def _imported_at_call(function: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that, when it is called, imports and runs a function of the package relvm.cli.

    function: the module and the name of the function, such as "bench.bench".  Only the modules that the chosen command
    needs are imported.
    """

    def run(options: argparse.Namespace) -> int:
        file, _, name = function.partition(".")
        return getattr(importlib.import_module(f"relvm.cli.{file}"), name)(options)

    return run
