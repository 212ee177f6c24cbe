/* pyconfig.h: the macros of pyconfig.h that the headers of Python's limited API use, for the systems that
   release/wheels.py builds for.  It replaces the pyconfig.h of the Python that runs the build, which describes that one
   system. */
#ifndef RELVM_RELEASE_PYCONFIG_H
#define RELVM_RELEASE_PYCONFIG_H

#ifdef _WIN32
#define HAVE_DECLSPEC_DLL 1
#define MS_COREDLL 1
#define MS_WIN64 1
#define MS_WINDOWS 1
#define Py_ENABLE_SHARED 1
#define SIZEOF_LONG 4
#define SIZEOF_WCHAR_T 2
#else
#define SIZEOF_LONG 8
#define SIZEOF_WCHAR_T 4
#endif
#define HAVE_SSIZE_T 1
#define HAVE_SYS_STAT_H 1
#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_UINTPTR_T 8
#define SIZEOF_VOID_P 8

#ifndef Py_LIMITED_API
#error "this pyconfig.h is for the limited API only"
#endif
_Static_assert(sizeof(int) == SIZEOF_INT && sizeof(long) == SIZEOF_LONG && sizeof(long long) == SIZEOF_LONG_LONG &&
                   sizeof(__SIZE_TYPE__) == SIZEOF_SIZE_T && sizeof(__UINTPTR_TYPE__) == SIZEOF_UINTPTR_T &&
                   sizeof(void *) == SIZEOF_VOID_P && sizeof(__WCHAR_TYPE__) == SIZEOF_WCHAR_T,
               "release/python/pyconfig.h states other sizes than this system has");

#endif
