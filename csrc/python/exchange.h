/* exchange.h: conversion of arrays by the C exchange API of DLPack, which libraries such as PyTorch provide.  The
   conversion of an array runs no Python code.  All functions require the GIL. */
#ifndef RELVM_PYTHON_EXCHANGE_H
#define RELVM_PYTHON_EXCHANGE_H

#include "objects.h"

/* Sets objects->exchange and objects->exchange_api to a type of arrays and its API, or to NULL if `type` is None.
   Returns 0, or -1 with TypeError if the type has no API of a supported version. */
int relvm_exchange_set(Objects *objects, PyObject *type);
/* Stores a tensor over the memory of an array, which the tensor keeps alive, in *dst.  Returns 1.  Returns 0 without an
   exception if the array is not on the CPU, not dense and row-major, not aligned, or of a dtype that relvm does not
   have.  Returns -1 with an exception if it fails. */
int relvm_exchange_store(const Objects *objects, PyObject *array, rvm_value *dst);
/* Returns an array over the memory of a tensor, which the array keeps alive.  Takes ownership of `value`, also on
   failure.  Returns NULL with an exception if it fails. */
PyObject *relvm_exchange_take(Objects *objects, rvm_value value);

#endif
