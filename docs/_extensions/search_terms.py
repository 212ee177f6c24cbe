"""Terms under which the search of the site lists a section first.

Readers search with words that the page does not use, or that other pages use more often.  The terms are index entries
of the section.  The search compares the whole query with each entry: the query must be at least half of it.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import index
from sphinx.application import Sphinx

# The terms of each section.  A section is the document, `#`, and the anchor of the heading.  The title of the document
# has no anchor.
_TABLE = """
aot#memory
    arena, static memory, memory pool
aot#microcontrollers
    microcontroller, arduino, esp32, cortex-m, stm32, tinyml, embedded, bare metal
contributing
    contribute, new operator, add an operator
cpp
    c++, cpp, cmake, raii
editors#vs-code
    vs code, vscode, editor, syntax highlighting
explore#debugger
    debugger, breakpoint, step through, debug
explore#interactive-graphs
    netron, graph, visualize, model viewer
explore#live
    playground, compiler explorer, live editor
faq#can-i-run-models-that-i-do-not-trust
    untrusted model, sandbox, malicious
faq#can-relvm-train-a-model
    training, train a model, gradient, fine-tuning, backpropagation, autograd
faq#does-relvm-run-fp16-models
    fp16, float16, half precision, bf16, bfloat16, f16, mixed precision
faq#how-fast-is-it
    benchmark, how fast, performance, speed, fast, faster than onnxruntime
faq#is-a-c-compiler-needed
    gcc, clang, c compiler, without a compiler, zig
faq#under-which-license-is-relvm
    license, licence, apache, commercial use
faq#what-does-relvm-run-on
    gpu, cuda, rocm, npu, tensorrt, accelerator
faq#when-is-relvm-a-good-choice
    how much memory, memory usage, memory footprint, size of the runtime
faq#when-should-i-not-use-relvm
    alternatives, drawbacks, when not to use
faq#where-does-relvm-write
    cache folder, cache directory, clear the cache, disk space
faq#which-environment-variables-does-relvm-read
    environment variables, environment variable, settings
fusion
    fusion, operator fusion, fused kernels
how-to#call-python-functions-from-a-program
    callback, python function, custom python operator
how-to#deploy-without-python
    deploy, deployment, without python, shared library
how-to#find-the-first-differing-value
    compare, wrong result, different results, accuracy, mismatch
how-to#find-the-origin-of-a-nan
    nan, inf, not a number
how-to#fix-or-bound-a-dimension
    dynamic batch, dynamic batch size, batch size, dynamic shape, dynamic shapes, dynamic axes, variable
    length, fixed size, input shape, symbolic size
how-to#load-weights-from-a-safetensors-file
    safetensors, weights file, load weights, lora
how-to#profile-a-model
    profile, profiler, profiling, which kernel is slow
how-to#run-an-onnx-model
    load_model, load model, run onnx, inference, get started, quick start
how-to#run-in-a-container
    docker, dockerfile, container, podman, kubernetes
how-to#run-many-batches-on-several-processes-or-machines
    dask, cluster, many files, batch processing
how-to#run-on-other-processors
    cross compile, other processor, avx, avx512, illegal instruction
how-to#save-and-reuse-builds
    save model, save a model, save compiled model, rvm file, reload
how-to#serve-models-over-http
    server, http, rest api, serving, triton, kserve, fastapi
how-to#use-several-threads
    multithreading, concurrent requests, parallel, thread safe
how-to#write-a-function-in-c
    custom operator, custom op, c function, plugin
how-to#write-a-kernel
    custom kernel, write a kernel, own kernel
language#numpy-in-scripts
    numpy functions, numpy in scripts, np functions
llm
    llm, language model, gpt, llama, chat, text generation, kv cache, transformers, tokenizer
machine#pre-bound-inputs
    kv cache inputs, bind inputs, set_input
machine#threads
    threads, num_threads, set number of threads, number of threads, cpu cores
machine#timing-and-profiling
    time a run, timeline, perfetto, flame graph, trace
machine#values
    dtype, dtypes, input types, float64 input, data types, convert an array
notebooks
    jupyter, notebook, colab, ipython
onnx#operators
    supported operators, operator list, opset, opsets, onnx operators
onnxruntime
    onnxruntime, onnx runtime, inferencesession, drop-in replacement
platforms
    platforms, supported platforms, android, ios, iphone, operating system, risc-v
platforms#browser
    browser, webassembly, wasm, javascript, node.js
platforms#mac
    mac, macos, apple silicon
platforms#raspberry-pi
    raspberry, raspberry pi, arm, arm64, aarch64, jetson
platforms#windows
    windows, dll, wine, mingw
pytorch
    torch, pytorch, torch.onnx.export, export a model, convert, convert a model, tensorflow, keras
quantize
    quantize, quantization, int8, int4, smaller model, compress, model size
quantize#calibrate-static-quantization
    calibration, calibrate
scaling
    scale out, spark, ray, multiprocessing
security
    security, vulnerability, threat model
security#limits-of-a-run
    memory limit, limit memory, time limit, timeout, out of memory, oom, max_bytes, max_seconds
slow
    slow, latency, optimize, make it faster, speed up
slow#the-first-result-takes-long
    warm up, warmup, warm-up, cold start, first run, startup time
tutorial
    tutorial, first program, example, hello world
tutorial#install
    install, installation, pip install, uninstall, requirements
tutorial#symbolic-sizes
    symbolic sizes, symbolic shapes
"""


def _read_table() -> dict[str, tuple[str, ...]]:
    places = re.split(r"\n(?=\S)", _TABLE.strip())
    rows = (place.split("\n", 1) for place in places)
    return {place: tuple(" ".join(terms.split()).split(", ")) for place, terms in rows}


TERMS = _read_table()


def add_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Add the terms of a document's sections as index entries.  Raise ValueError if a section does not exist."""
    document = app.env.docname
    sections = {
        name: section for section in doctree.findall(nodes.section) for name in section["ids"]
    }
    for place, terms in TERMS.items():
        page, _, anchor = place.partition("#")
        if page != document:
            continue
        section = sections.get(anchor) if anchor else next(doctree.findall(nodes.section))
        if section is None:
            raise ValueError(
                f"{document}: no section {anchor}; docs/_extensions/search_terms.py has terms for it"
            )
        target = section["ids"][0]
        section.insert(
            1, index(entries=[("single", term, target, "main", None) for term in terms])
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension.  Sphinx calls this function."""
    app.connect("doctree-read", add_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
