/* real_time.c: runs an executable in real-time mode, and checks that runs after the first allocate nothing, take no
 lock and make no system call.
 *
 *     real_time FILE.rvm RUNS DIMS LARGER_DIMS
 *
 * The function main takes an f32 tensor.  Link with --wrap=NAME for each function in WRAPPED below.  During the runs, a
 * filter of system calls ends the process with SIGSYS.  Prints the counts of the wrapped functions, and what a run with
 * larger dimensions does before and after the mode is turned on again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relvm.h"

enum { MAX_RANK = 8 };

static int is_counting, allocations, frees, locks, clocks;

#define WRAPPED(result, name, parameters, arguments, count) \
  result __real_##name parameters;                          \
  result __wrap_##name parameters;                          \
  result __wrap_##name parameters {                         \
    (count) += is_counting;                                 \
    return __real_##name arguments;                         \
  }
WRAPPED(void *, malloc, (size_t size), (size), allocations)
WRAPPED(void *, calloc, (size_t count, size_t size), (count, size), allocations)
WRAPPED(void *, realloc, (void *block, size_t size), (block, size), allocations)
WRAPPED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), allocations)
WRAPPED(void, free, (void *block), (block), frees)
WRAPPED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), locks)
WRAPPED(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex), locks)
WRAPPED(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex), locks)
WRAPPED(int, pthread_cond_signal, (pthread_cond_t * condition), (condition), locks)
WRAPPED(int, clock_gettime, (clockid_t clock, struct timespec *time), (clock, time), clocks)

/* Ends the process with SIGSYS at a system call other than write and exit_group. */
static void forbid_system_calls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("seccomp");
    exit(77);
  }
}

static void check(rvm_status status, rvm_value error) {
  if (status == RVM_OK) return;
  fprintf(stderr, "%s\n", error.tag == RVM_TAG_ERROR ? error.as.error->message : "failed");
  exit(1);
}

static rvm_executable *load(const char *path) {
  struct stat status;
  const int file = open(path, O_RDONLY);
  if (file < 0 || fstat(file, &status)) exit(1);
  void *bytes = aligned_alloc(64, ((size_t)status.st_size + 63) / 64 * 64);
  if (read(file, bytes, (size_t)status.st_size) != status.st_size) exit(1);
  const rvm_load_options options = {.trust_native = 1};
  rvm_executable *executable;
  rvm_value error;
  check(rvm_executable_load(bytes, status.st_size, &options, &executable, &error), error);
  return executable;
}

/* Creates a tensor over memory of the host. */
static rvm_value input(char *text) {
  int64_t dims[MAX_RANK], count = 1;
  int32_t rank = 0;
  for (char *at = strtok(text, ","); at && rank < MAX_RANK; at = strtok(NULL, ",")) count *= dims[rank++] = atoll(at);
  float *elements = malloc((size_t)count * sizeof *elements);
  for (int64_t i = 0; i < count; i++) elements[i] = (float)(i % 7 - 3);
  rvm_value tensor;
  check(rvm_tensor_wrap(RVM_DTYPE_f32, rank, dims, elements, free, elements, &tensor), tensor);
  return tensor;
}

static uint64_t digest(const rvm_tensor *tensor) {
  uint64_t hash = 14695981039346656037u;
  const unsigned char *bytes = tensor->dl.data;
  for (int64_t i = 0; i < rvm_tensor_size_bytes(tensor); i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

int main(int count, char **texts) {
  if (count != 5) return 1;
  rvm_executable *executable = load(texts[1]);
  const int32_t function = rvm_executable_find(executable, "main");
  rvm_machine *machine;
  rvm_value error, result, x = input(texts[3]), larger = input(texts[4]);
  check(rvm_machine_new(executable, NULL, &machine, &error), error);
  if (rvm_machine_enter(machine) != 1) return 1;
  check(rvm_machine_real_time(machine, 1, &error), error);
  check(rvm_machine_call(machine, function, &x, 1, &result), result);
  const uint64_t expected = digest(result.as.tensor);
  rvm_value_release(&result);

  const pid_t child = fork(); /* the filter cannot be removed */
  if (child == 0) {
    forbid_system_calls();
    is_counting = 1;
    for (int run = atoi(texts[2]); run > 0; run--) {
      if (rvm_machine_call(machine, function, &x, 1, &result)) _exit(2);
      if (digest(result.as.tensor) != expected) _exit(3);
      rvm_value_release(&result);
    }
    is_counting = 0;
    char text[100];
    const int length = snprintf(text, sizeof text, "allocations %d, frees %d, locks %d, clocks %d\n", allocations,
                                frees, locks, clocks);
    _exit(write(1, text, (size_t)length) == length ? 0 : 4);
  }
  int status;
  if (waitpid(child, &status, 0) != child) return 1;
  if (status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    fprintf(stderr, "a run was ended by signal %d\n", WTERMSIG(status));
    return 1;
  }
  if (rvm_machine_call(machine, function, &larger, 1, &result) == RVM_OK) return 1;
  printf("%s\n", result.as.error->message);
  rvm_value_release(&result);
  check(rvm_machine_real_time(machine, 1, &error), error);
  for (int run = 0; run < 2; run++) {
    check(rvm_machine_call(machine, function, &larger, 1, &result), result);
    rvm_value_release(&result);
    check(rvm_machine_call(machine, function, &x, 1, &result), result); /* smaller sizes fit */
    if (digest(result.as.tensor) != expected) return 1;
    rvm_value_release(&result);
  }
  check(rvm_machine_real_time(machine, 0, &error), error);
  rvm_value_release(&x);
  rvm_value_release(&larger);
  check(rvm_machine_leave(machine, &error), error);
  rvm_machine_release(machine);
  rvm_executable_release(executable);
  return 0;
}
