/* system.h: the interface of the runtime to the operating system.  One file for each system defines the functions:
   linux.c, macos.c, windows.c or webassembly.c.  posix.c defines the functions that Linux and macOS share.  Every build
   compiles all of these files; the files for other systems are then empty.  Other files of the runtime use only these
   functions and the C standard library. */
#ifndef RELVM_SYSTEM_H
#define RELVM_SYSTEM_H

#include "relvm.h"

#if defined(_WIN32)
#include <malloc.h>
#define RVM_SYSTEM "windows"
#elif defined(__wasm__)
#include <malloc.h>
#define RVM_SYSTEM "wasi"
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#include <pthread.h>
#define RVM_SYSTEM "macos"
#elif defined(__linux__)
#include <malloc.h>
#include <pthread.h>
#define RVM_SYSTEM "linux"
#else
#error "relvm needs Linux, macOS, Windows or WASI"
#endif

/* ---- memory, time, random numbers ---- */

/* Returns the usable size of a block of malloc, in bytes. */
static inline size_t rvm_block_bytes(void *block) {
#if defined(_WIN32)
  return _msize(block);
#elif defined(__APPLE__)
  return malloc_size(block);
#else
  return malloc_usable_size(block);
#endif
}

/* Maps zeroed pages, which take memory when they are first written to.  Returns NULL on failure. */
void *rvm_pages_map(size_t size_bytes);
void rvm_pages_unmap(void *pages, size_t size_bytes);

enum { RVM_REASON_BYTES = 200 }; /* the size of a buffer for the reason of a failure, with its NUL */

/* Maps a nonempty file for reading.  Stores its size and returns its address, which is aligned to a page.  On failure,
   writes the reason to `reason` and returns NULL. */
const void *rvm_path_map(const char *path, int64_t *size_bytes, char reason[RVM_REASON_BYTES]);
void rvm_path_unmap(const void *bytes, int64_t size_bytes);

/* Returns the time of the monotonic clock, in nanoseconds since an arbitrary point. */
int64_t rvm_clock_now(void);

/* Fills `size_bytes` bytes with random bytes from the system.  Returns 0 if the system does not provide them. */
int rvm_random_bytes(void *bytes, size_t size_bytes);

#ifdef __x86_64__
/* Asks the system to save the tile registers of AMX for the threads of this process.  Returns whether it does. */
int rvm_enable_tile_registers(void);
#endif

#ifdef __aarch64__
enum { RVM_HWCAP_CRC32 = 1 << 7 };
/* Returns the features of the processor in the form of Linux: AT_HWCAP in the low half, and AT_HWCAP2 in the high half.
   On macOS, only the bits of CRC-32 and of features in cpu_features.def are set, and on Windows only that of CRC-32. */
uint64_t rvm_hwcaps(void);
#endif

/* ---- threads ---- */

/* A mutex and a condition variable, which are constant-initialized and never destroyed. */
#if defined(_WIN32)
typedef struct rvm_mutex {
  void *lock;
} rvm_mutex;
typedef struct rvm_condition {
  void *variable;
} rvm_condition;
typedef void *rvm_thread;
#define RVM_MUTEX_INITIAL {NULL}
#define RVM_CONDITION_INITIAL {NULL}
#elif defined(__wasm__) /* one thread */
typedef struct rvm_mutex {
  char unused;
} rvm_mutex;
#define RVM_MUTEX_INITIAL {0}
#else
typedef struct rvm_mutex {
  pthread_mutex_t lock;
} rvm_mutex;
typedef struct rvm_condition {
  pthread_cond_t variable;
} rvm_condition;
typedef pthread_t rvm_thread;
#define RVM_MUTEX_INITIAL {PTHREAD_MUTEX_INITIALIZER}
#define RVM_CONDITION_INITIAL {PTHREAD_COND_INITIALIZER}
#endif

void rvm_mutex_lock(rvm_mutex *mutex);
void rvm_mutex_unlock(rvm_mutex *mutex);
void rvm_thread_yield(void);
/* Sets *lowest to the lowest address of this thread's C stack, and returns its size in bytes.  Returns 0 if the system
   lacks the memory to determine them. */
size_t rvm_thread_stack(const char **lowest);

#ifndef __wasm__
/* Returns whether the mutex was free, and is now locked. */
int rvm_mutex_try_lock(rvm_mutex *mutex);
/* Unlocks the mutex, waits to be woken, and locks it again.  Can also return without being woken. */
void rvm_condition_wait(rvm_condition *condition, rvm_mutex *mutex);
void rvm_condition_wake_all(rvm_condition *condition);
/* Starts a thread that runs `work` and handles no signals.  Returns 0 on failure. */
int rvm_thread_start(rvm_thread *thread, void (*work)(void), size_t stack_bytes);
void rvm_thread_join(rvm_thread thread);
/* Returns the number of the processor that runs the calling thread, or -1 if the system does not tell. */
int32_t rvm_thread_processor(void);
/* Moves the calling thread away from a processor, and keeps it from returning there until the next call of this
   function.  Returns 0 if the thread may run on no other processor, or if the system refuses.  On other systems than
   Linux, only returns 1. */
int rvm_thread_avoid(int32_t processor);
#endif

/* An attribute of a static function that ends the threads of the library before it is unloaded, or when the process
   exits.  On Windows, a library cannot wait for its threads then: it stays loaded until the process exits. */
#ifdef _WIN32
#define RVM_BEFORE_UNLOAD __attribute__((unused))
#else
#define RVM_BEFORE_UNLOAD __attribute__((destructor))
#endif

/* Makes a fork of the process call `before`, then `in_parent` in the parent and `in_child` in the child.  Each may be
   NULL.  Does nothing on systems without forks. */
void rvm_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* ---- shared libraries ---- */

/* A shared library loaded from memory, through a temporary file.  `file` is this file while it is open, otherwise
   negative. */
typedef struct rvm_library {
  void *handle; /* NULL if the library is closed */
  intptr_t file;
} rvm_library;
#define RVM_LIBRARY_CLOSED {NULL, -1}

/* WebAssembly cannot load a library.  The native code of one executable can be linked with the runtime
   (relvm/compiler/webassembly.py): `identity` is then the content of the executable's native section, and `symbols` are
   its functions, sorted by name. */
typedef struct rvm_linked_symbol {
  const char *name;
  rvm_status (*function)(void); /* relvm_native_open, a routine or a kernel, cast to this type */
} rvm_linked_symbol;

typedef struct rvm_linked_code {
  unsigned char identity[32];
  int32_t symbol_count;
  const rvm_linked_symbol *symbols;
} rvm_linked_code;

/* Loads a shared library into *library, which must be closed (RVM_LIBRARY_CLOSED).  On failure, writes the reason to
   `reason` and returns UNSUPPORTED, or OUT_OF_MEMORY if there is no space for the library's file.  The caller must
   close *library afterwards, even if the function fails. */
rvm_status rvm_library_load(rvm_library *library, const void *bytes, int64_t size_bytes, char reason[RVM_REASON_BYTES]);
/* Returns the address of a symbol that the library itself defines, or NULL. */
void *rvm_library_find(const rvm_library *library, const char *symbol);
/* Closes the library if it is open.  Addresses of its symbols become invalid. */
void rvm_library_close(rvm_library *library);

#endif
