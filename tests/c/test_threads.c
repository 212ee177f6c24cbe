/* test_threads.c: machines and pools used by several threads, and processes that fork meanwhile.  A second thread in a
   machine is rejected, references dropped on any thread are released once, and objects and storages are released on
   threads other than their own. */
#include <pthread.h>
#include <stdatomic.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "image.h"
#include "storage_pool.h"

enum { TENSORS = 200, THREADS = 4, STORAGES = 500 };

static rvm_machine *machine;
static int32_t endless, wait_function, identity, pair;
static atomic_int inside, go_on, released;

static void count_release(void *argument) {
  (void)argument;
  atomic_fetch_add(&released, 1);
}

static rvm_value counted(void) {
  static char data[1];
  rvm_value value;
  MAKE(value, rvm_tensor_wrap(RVM_DTYPE_u8, 0, NULL, data, count_release, NULL, &value));
  return value;
}

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

/* Reports that the machine is running, and waits. */
static rvm_status host_wait(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)arguments, (void)count, (void)result;
  atomic_store(&inside, 1);
  while (!atomic_load(&go_on)) pause_briefly();
  return RVM_OK;
}

static void *run_wait(void *status) {
  rvm_value result = {0};
  *(rvm_status *)status = rvm_machine_call(machine, wait_function, NULL, 0, &result);
  rvm_value_release(&result);
  return NULL;
}

/* Tries until the machine is free. */
static void *run_endless(void *status) {
  rvm_value result = {0};
  do {
    rvm_value_release(&result);
    *(rvm_status *)status = rvm_machine_call(machine, endless, NULL, 0, &result);
  } while (*(rvm_status *)status == RVM_BUSY);
  rvm_value_release(&result);
  return NULL;
}

static void a_busy_machine_refuses_a_second_thread(void) {
  pthread_t thread;
  rvm_status status = -1;
  rvm_value result = {0}, values[TENSORS];
  for (int i = 0; i < TENSORS; i++) values[i] = counted();
  atomic_store(&inside, 0), atomic_store(&go_on, 0), atomic_store(&released, 0);
  pthread_create(&thread, NULL, run_wait, &status);
  while (!atomic_load(&inside)) pause_briefly();
  CHECK_FAILS(rvm_machine_call(machine, identity, (rvm_value[]){int_value(1)}, 1, &result), RVM_BUSY, "another thread",
              result);
  for (int i = 0; i < TENSORS; i++) rvm_machine_drop(machine, values[i]);
  CHECK_INT(atomic_load(&released), 0); /* not while it runs */
  atomic_store(&go_on, 1);
  pthread_join(thread, NULL);
  CHECK_INT(status, RVM_OK);
  CHECK_INT(atomic_load(&released), TENSORS);
  CHECK_OK(rvm_machine_call(machine, identity, (rvm_value[]){int_value(1)}, 1, &result), result);
}

static void another_thread_interrupts_an_endless_loop(void) {
  for (int round = 0; round < 300; round++) {
    pthread_t thread;
    rvm_status status = -1;
    pthread_create(&thread, NULL, run_endless, &status);
    rvm_value result = {0};
    while (rvm_machine_call(machine, identity, (rvm_value[]){int_value(1)}, 1, &result) == RVM_OK) pause_briefly();
    rvm_value_release(&result); /* BUSY: the loop runs */
    rvm_machine_interrupt(machine);
    pthread_join(thread, NULL);
    CHECK_INT(status, RVM_INTERRUPTED);
  }
}

static void *drop_many(void *unused) {
  (void)unused;
  for (int i = 0; i < TENSORS; i++) rvm_machine_drop(machine, counted());
  return NULL;
}

static void drops_and_runs_may_meet(void) {
  pthread_t threads[3];
  rvm_value result = {0}, argument = counted();
  atomic_store(&released, 0);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, drop_many, NULL);
  for (int i = 0; i < 2000; i++) {
    /* a thread that drops a reference does not make the machine busy */
    CHECK_OK(rvm_machine_call(machine, identity, &argument, 1, &result), result);
    rvm_value_release(&result);
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  CHECK_INT(atomic_load(&released), 3 * TENSORS);
  rvm_machine_drop(machine, argument);
  CHECK_INT(atomic_load(&released), 3 * TENSORS + 1);
  rvm_machine_drop(machine, int_value(3));
}

/* Makes pairs, half of which are released outside the machine. */
static void *make_pairs(void *wrong) {
  for (int i = 0; i < TENSORS; i++) {
    rvm_value result = {0}, argument = int_value(i);
    while (rvm_machine_call(machine, pair, &argument, 1, &result) == RVM_BUSY) rvm_value_release(&result);
    *(int *)wrong += result.tag != RVM_TAG_TUPLE || result.as.tuple->items[1].as.i != i;
    if (i % 2)
      rvm_machine_drop(machine, result);
    else
      rvm_value_release(&result);
  }
  return NULL;
}

static void threads_take_turns(void) {
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0};
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, make_pairs, &wrong[t]);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    CHECK_INT(wrong[t], 0);
  }
}

static void *release_all(void *values) {
  for (int i = 0; i < STORAGES; i++) rvm_value_release(&((rvm_value *)values)[i]);
  return NULL;
}

/* closing: closes the pool before the storages are released. */
static void storages_die_on_any_thread(int closing) {
  static rvm_value values[THREADS][STORAGES];
  rvm_pool *pool = rvm_pool_new(0);
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < STORAGES; i++) MAKE(values[t][i], rvm_storage_new(pool, 64 + i, &values[t][i]));
    pthread_create(&threads[t], NULL, release_all, values[t]);
  }
  for (int i = 0; i < STORAGES && !closing; i++) {
    rvm_value value;
    MAKE(value, rvm_storage_new(pool, 64 + i, &value));
    rvm_value_release(&value);
  }
  if (closing) rvm_pool_close(pool);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  if (closing) return;
  CHECK_INT(rvm_pool_measure(pool).live_bytes, 0);
  rvm_pool_close(pool);
}

#ifdef _WIN32 /* no forks */
static void a_child_of_fork_finds_functions(void) {}
#else
/* Registers and unregisters a function until `go_on` is 0. */
static void *register_always(void *unused) {
  (void)unused;
  rvm_value error = {0};
  while (!atomic_load(&go_on)) {
    rvm_register("test.always", host_wait, NULL, 1, &error);
    rvm_unregister("test.always", &error);
  }
  return NULL;
}

/* A child process finds the table of functions, even if another thread held its lock. */
static void a_child_of_fork_finds_functions(void) {
  pthread_t thread;
  atomic_store(&go_on, 0);
  pthread_create(&thread, NULL, register_always, NULL);
  for (int round = 0; round < 300; round++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      _exit(!rvm_is_registered("test.wait"));
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    if (status != 0) break;
  }
  atomic_store(&go_on, 1);
  pthread_join(thread, NULL);
}
#endif

int main(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  CHECK_OK(rvm_register("test.wait", host_wait, NULL, 0, &error), error);
  uint32_t wait = image_packed(&program, "test.wait"), make_tuple = image_packed(&program, "vm.builtin.make_tuple");
  endless = (int32_t)image_bytecode(&program, "endless", "", 1);
  GOTO(&program, 0);
  identity = (int32_t)image_bytecode(&program, "identity", "x", 1);
  RET(&program, 0);
  pair = (int32_t)image_bytecode(&program, "pair", "x", 2);
  CALL(&program, 1, make_tuple, R(0), R(0));
  RET(&program, 1);
  wait_function = (int32_t)image_bytecode(&program, "wait", "", 1);
  CALL(&program, 0, wait);
  RET(&program, 0);
  MAKE(exe, image_load(&program, &exe, &error));
  MAKE(machine, rvm_machine_new(exe.executable, NULL, &machine, &error));
  a_busy_machine_refuses_a_second_thread();
  another_thread_interrupts_an_endless_loop();
  drops_and_runs_may_meet();
  threads_take_turns();
  storages_die_on_any_thread(0);
  storages_die_on_any_thread(1);
  a_child_of_fork_finds_functions();
  rvm_machine_release(machine);
  loaded_release(&exe);
  CHECK_OK(rvm_unregister("test.wait", &error), error);
  return CHECK_RESULT();
}
