/* onnx_reader.h: the functions of relvm._binding that read ONNX files (csrc/readers/onnx.h). */
#ifndef RELVM_PYTHON_ONNX_READER_H
#define RELVM_PYTHON_ONNX_READER_H

#include <Python.h>

/* The functions, for the methods of the module. */
extern PyMethodDef relvm_onnx_methods[];

#endif
