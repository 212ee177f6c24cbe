/* thread_pool.c: the worker threads of the process.  One loop runs at a time.  A worker joins a loop through `gate`,
   takes parts of the loop from `next` until none is left, and waits for the next loop.  A waiting worker first spins
   for a while, then sleeps.  A system can wake a worker on the processor of the thread that runs the loop, where each
   would keep the other from running.  The worker then moves to another processor.  WebAssembly has one thread, which
   runs all loops. */
#ifdef __wasm__
#include "thread_pool.h"

void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  (void)threads, (void)grain;
  part(shared, 0, count);
}
#else
#include "thread_pool.h"

#include <stdatomic.h>

#include "base.h"
#include "system.h"

enum {
  PARTS_PER_THREAD = 4,  /* maximum number of parts of a loop per thread; several balance the load */
  STACK_BYTES = 4 << 20, /* C stack of a worker */
  /* A loop whose grain is above 1 wakes sleeping workers, which takes 10 us, only if it and the loops shortly before it
     have at least this many parts of least size (is_worth_waking). */
  WAKING_PARTS = 16,
  SPIN_NANOSECONDS = 200000, /* time for which a worker spins before it sleeps */
  SPINS_PER_LOOK = 64,       /* spins between two looks at the clock, while a worker waits for a loop */
  SPINS_PER_YIELD =
      4096 /* spins between two calls of rvm_thread_yield, while the thread that runs a loop waits for the workers */
};

/* The gate packs the loop's number (32 bits), the number of workers that may still join (16), and the number of
   workers inside (16). */
#define LOOP(gate) ((uint32_t)((gate) >> 32))
#define OPENINGS(gate) ((gate) & 0xffff0000u)
#define ONE_OPENING ((uint64_t)1 << 16)
#define INSIDE(gate) ((gate) & 0xffffu)

static struct {
  rvm_mutex owner; /* held by the thread that runs a loop; guards `threads` and `count` */
  rvm_thread threads[RVM_MAX_THREADS];
  int32_t count;
  _Atomic(uint64_t) gate;
  rvm_mutex sleep_lock; /* held while a worker decides to sleep, and while workers are woken */
  rvm_condition wake;
  atomic_int asleep; /* number of sleeping workers */
  atomic_int ends;   /* 1 if the workers must end */
  /* The state of is_worth_waking, guarded by `owner`.  It covers the recent loops that found too few workers awake:
     parts_alone is the sum of the largest numbers of parts into which these loops could be divided, and time_alone is
     the time of the last one. */
  int64_t parts_alone, time_alone;
  /* The current loop.  While a worker is inside or may join, only `next` changes. */
  rvm_part part;
  const void *shared;
  int64_t total, step;   /* iterations of the loop and of a part */
  _Atomic(int64_t) next; /* first iteration of the next part */
  atomic_int processor;  /* on which the thread that runs the loop started it */
} pool = {.owner = RVM_MUTEX_INITIAL, .sleep_lock = RVM_MUTEX_INITIAL, .wake = RVM_CONDITION_INITIAL};

static void relax(void) {
#if defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Runs parts of the current loop until none is left. */
static void take_parts(void) {
  for (;;) {
    int64_t first = atomic_fetch_add(&pool.next, pool.step);
    if (first >= pool.total) return;
    int64_t remaining = pool.total - first;
    pool.part(pool.shared, first, first + (remaining < pool.step ? remaining : pool.step));
  }
}

/* ---- workers ---- */

/* Returns whether a worker that has finished loop number `done` may join another loop. */
static int has_loop(uint32_t done) {
  uint64_t gate = atomic_load(&pool.gate);
  return LOOP(gate) != done && OPENINGS(gate) != 0;
}

/* Moves the worker to another processor if it runs on that of the thread that runs the loop.  Returns 0 if the worker
   may run on no other processor. */
static int leave_processor(void) {
  const int32_t processor = rvm_thread_processor();
  return processor < 0 || processor != atomic_load_explicit(&pool.processor, memory_order_relaxed) ||
         rvm_thread_avoid(processor);
}

/* Waits until the worker may join a loop other than number `done`, or must end.  Spins first, because loops often
   follow each other quickly. */
static void await_loop(uint32_t done) {
  const int64_t start = rvm_clock_now();
  for (int may_spin = leave_processor(); may_spin; may_spin = rvm_clock_now() - start < SPIN_NANOSECONDS)
    for (int32_t i = 0; i < SPINS_PER_LOOK; i++) {
      if (has_loop(done) || atomic_load_explicit(&pool.ends, memory_order_relaxed)) return;
      relax();
    }
  rvm_mutex_lock(&pool.sleep_lock);
  atomic_fetch_add(&pool.asleep, 1);
  while (!has_loop(done) && !atomic_load(&pool.ends)) rvm_condition_wait(&pool.wake, &pool.sleep_lock);
  atomic_fetch_sub(&pool.asleep, 1);
  rvm_mutex_unlock(&pool.sleep_lock);
}

/* The main function of a worker. */
static void work(void) {
  uint32_t done = 0;
  while (!atomic_load(&pool.ends)) {
    await_loop(done);
    uint64_t gate = atomic_load(&pool.gate);
    while (LOOP(gate) != done && OPENINGS(gate) != 0) {
      if (!atomic_compare_exchange_weak(&pool.gate, &gate, gate - ONE_OPENING + 1)) continue;
      leave_processor();
      take_parts();
      atomic_fetch_sub(&pool.gate, 1);
      done = LOOP(gate);
    }
  }
}

static void wake_all(void) {
  if (atomic_load(&pool.asleep) == 0) return;
  rvm_mutex_lock(&pool.sleep_lock);
  rvm_condition_wake_all(&pool.wake);
  rvm_mutex_unlock(&pool.sleep_lock);
}

/* ---- the pool ---- */

/* Resets the pool in the child process of a fork, which has no workers. */
static void reset_pool(void) {
  const rvm_mutex unlocked = RVM_MUTEX_INITIAL;
  const rvm_condition no_waiters = RVM_CONDITION_INITIAL;
  pool.owner = pool.sleep_lock = unlocked;
  pool.wake = no_waiters;
  pool.count = 0;
  atomic_store(&pool.gate, 0);
  atomic_store(&pool.asleep, 0);
}

/* Ends the workers when the library is unloaded or the process exits.  Does nothing if a loop is running then. */
static RVM_BEFORE_UNLOAD void end_workers(void) {
  if (!rvm_mutex_try_lock(&pool.owner)) return;
  atomic_store(&pool.ends, 1);
  rvm_mutex_lock(&pool.sleep_lock);
  rvm_condition_wake_all(&pool.wake);
  rvm_mutex_unlock(&pool.sleep_lock);
  while (pool.count > 0) rvm_thread_join(pool.threads[--pool.count]);
  rvm_mutex_unlock(&pool.owner);
}

/* Creates workers until there are `count` or creation fails. */
static void grow(int32_t count) {
  static int watches_forks; /* guarded by pool.owner */
  if (pool.count >= count || atomic_load(&pool.ends)) return;
  if (!watches_forks) rvm_watch_forks(NULL, NULL, reset_pool);
  watches_forks = 1;
  while (pool.count < count && rvm_thread_start(&pool.threads[pool.count], work, STACK_BYTES)) pool.count++;
}

/* Runs a loop in parts of `step` iterations on the calling thread and at most `helpers` workers, and returns when all
   parts have ended.  wakes: whether sleeping workers are woken. */
static void run_shared(int32_t helpers, int wakes, rvm_part part, const void *shared, int64_t count, int64_t step) {
  pool.part = part;
  pool.shared = shared;
  pool.total = count;
  pool.step = step;
  atomic_store_explicit(&pool.processor, rvm_thread_processor(), memory_order_relaxed);
  atomic_store(&pool.next, 0);
  uint64_t number = LOOP(atomic_load(&pool.gate)) + 1;
  if (number >> 32) number = 1; /* 0 is reserved: a new worker counts loop 0 as done */
  atomic_store(&pool.gate, number << 32 | (uint64_t)helpers * ONE_OPENING);
  if (wakes) wake_all();
  take_parts();
  uint64_t gate = atomic_load(&pool.gate);
  while (!atomic_compare_exchange_weak(&pool.gate, &gate, gate - OPENINGS(gate))) continue;
  for (int32_t i = 1; INSIDE(atomic_load(&pool.gate)) != 0; i++) {
    relax();
    if (i % SPINS_PER_YIELD == 0) rvm_thread_yield();
  }
}

/* Returns whether a loop should wake the workers: if it has long iterations or enough parts of least size.  The parts
   of the loops that shortly preceded it count, too, because short loops often follow each other. */
static int is_worth_waking(int64_t count, int64_t grain) {
  const int64_t now = rvm_clock_now();
  if (now - pool.time_alone > SPIN_NANOSECONDS) pool.parts_alone = 0;
  pool.time_alone = now;
  pool.parts_alone += count / grain;
  return grain == 1 || pool.parts_alone >= WAKING_PARTS;
}

/* Returns how many threads can share a loop of `count` iterations in parts of at least `grain`: at most `threads`. */
static int32_t useful_threads(int32_t threads, int64_t count, int64_t grain) {
  return count / grain < threads ? (int32_t)(count / grain) : threads;
}

/* Returns the number of iterations of each part of a loop that `threads` threads share. */
static int64_t part_size(int32_t threads, int64_t count, int64_t grain) {
  int64_t parts = count / grain;
  if (parts > threads * PARTS_PER_THREAD) parts = threads * PARTS_PER_THREAD;
  parts -= parts % threads; /* a multiple of `threads`, so that all threads can take equally many parts */
  return (count + parts - 1) / parts;
}

void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  if (threads <= 1 || count / 2 < grain || !rvm_mutex_try_lock(&pool.owner)) {
    part(shared, 0, count);
    return;
  }
  threads = useful_threads(threads, count, grain);
  grow(threads - 1);
  if (threads - 1 > pool.count) threads = pool.count + 1;
  const int32_t helpers = threads - 1, awake = pool.count - atomic_load(&pool.asleep);
  const int wakes = awake < helpers && is_worth_waking(count, grain);
  if (helpers > 0 && (awake > 0 || wakes))
    run_shared(helpers, wakes, part, shared, count, part_size(threads, count, grain));
  else
    part(shared, 0, count);
  rvm_mutex_unlock(&pool.owner);
}
#endif
