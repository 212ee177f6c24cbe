/* posix.c: implements the part of system.h that is the same on Linux and macOS. */
#include "posix.h"

#include "system.h"

#if defined(__linux__) || defined(__APPLE__)
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

void *rvm_pages_map(size_t size_bytes) {
  void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

void rvm_pages_unmap(void *pages, size_t size_bytes) {
  if (pages) munmap(pages, size_bytes);
}

const void *rvm_path_map(const char *path, int64_t *size_bytes, char reason[RVM_REASON_BYTES]) {
  void *bytes = MAP_FAILED;
  struct stat file;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0 && fstat(descriptor, &file) == 0) {
    *size_bytes = file.st_size;
    bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0); /* fails if the file is empty */
  }
  if (bytes == MAP_FAILED) snprintf(reason, RVM_REASON_BYTES, "%s", strerror(errno));
  if (descriptor >= 0) close(descriptor);
  return bytes == MAP_FAILED ? NULL : bytes;
}

void rvm_path_unmap(const void *bytes, int64_t size_bytes) {
  if (bytes) munmap((void *)bytes, (size_t)size_bytes);
}

/* macOS writes at most INT_MAX bytes at a time. */
int rvm_file_write(int descriptor, const char *bytes, int64_t size_bytes) {
  while (size_bytes > 0) {
    ssize_t written = write(descriptor, bytes, size_bytes < INT_MAX ? (size_t)size_bytes : INT_MAX);
    if (written <= 0) return 0;
    bytes += written;
    size_bytes -= written;
  }
  return 1;
}

int64_t rvm_clock_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void rvm_mutex_lock(rvm_mutex *mutex) { pthread_mutex_lock(&mutex->lock); }
void rvm_mutex_unlock(rvm_mutex *mutex) { pthread_mutex_unlock(&mutex->lock); }
int rvm_mutex_try_lock(rvm_mutex *mutex) { return pthread_mutex_trylock(&mutex->lock) == 0; }
void rvm_condition_wait(rvm_condition *condition, rvm_mutex *mutex) {
  pthread_cond_wait(&condition->variable, &mutex->lock);
}
void rvm_condition_wake_all(rvm_condition *condition) { pthread_cond_broadcast(&condition->variable); }
void rvm_thread_yield(void) { sched_yield(); }

/* `work` is a function without arguments: POSIX lets a pointer to it be passed as a pointer to data. */
static void *run_thread(void *work) {
  void (*function)(void);
  memcpy(&function, &work, sizeof function);
  function();
  return NULL;
}

/* The thread inherits the blocked signals, so that the program's own threads handle all of them. */
int rvm_thread_start(rvm_thread *thread, void (*work)(void), size_t stack_bytes) {
  pthread_attr_t attributes;
  sigset_t all, previous;
  void *argument;
  if (pthread_attr_init(&attributes) != 0) return 0;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  memcpy(&argument, &work, sizeof argument);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  int is_started = pthread_create(thread, &attributes, run_thread, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  return is_started;
}

void rvm_thread_join(rvm_thread thread) { pthread_join(thread, NULL); }

void rvm_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  pthread_atfork(before, in_parent, in_child);
}
#endif
