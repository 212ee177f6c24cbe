/* registry.c: see registry.h. */
#include "cold.h"

#include "registry.h"

#include <string.h>

#include "errors.h"
#include "executable.h"
#include "selected.h"
#include "system.h"

typedef struct entry {
  char *name;
  rvm_packed_function function;
  void *self;
} entry;

/* The registered functions, sorted by name.  Guarded by `lock`. */
static rvm_mutex lock = RVM_MUTEX_INITIAL;
static entry *entries;
static int32_t entry_count, entry_capacity;

/* The handlers of forks.  The parent holds the lock during a fork, so that the table of the child is
   consistent.  Both processes release the lock afterwards. */
static void lock_table(void) { rvm_mutex_lock(&lock); }
static void unlock_table(void) { rvm_mutex_unlock(&lock); }
static __attribute__((constructor)) void watch_forks(void) { rvm_watch_forks(lock_table, unlock_table, unlock_table); }

const rvm_builtin_row *rvm_builtin_row_of(enum rvm_builtin builtin) {
  const rvm_builtin_row *row = rvm_builtin_rows;
  while (row->number != builtin) row++;
  return row;
}

/* Returns the index of a builtin in rvm_builtins, or -1 if there is none of that name. */
static int32_t builtin_index(const char *name) {
  if (!rvm_is_builtin_name(name)) return -1;
  for (int32_t i = 0; i < rvm_builtin_row_count; i++)
    if (strcmp(rvm_builtin_rows[i].name, name) == 0) return i;
  return -1;
}

/* If `name` is registered, sets *found to 1 and returns its index in `entries`.  Otherwise sets *found to 0 and returns
   the index at which to insert it.  The caller must hold the lock. */
static int32_t entry_position(const char *name, int32_t *found) {
  int32_t low = 0, high = entry_count;
  *found = 0;
  while (low < high) {
    int32_t middle = low + (high - low) / 2, order = strcmp(entries[middle].name, name);
    if (order == 0) {
      *found = 1;
      return middle;
    }
    if (order < 0) low = middle + 1;
    if (order > 0) high = middle;
  }
  return low;
}

int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self) {
  const int32_t index = builtin_index(name);
  *self = NULL;
  *function = index < 0 ? NULL : rvm_builtins[index];
  if (index >= 0 || RVM_IS_SELECTIVE) return *function != NULL;
  int32_t found;
  rvm_mutex_lock(&lock);
  int32_t position = entry_position(name, &found);
  if (found) {
    *function = entries[position].function;
    *self = entries[position].self;
  }
  rvm_mutex_unlock(&lock);
  return found;
}

int32_t rvm_is_registered(const char *name) {
  if (!name) return 0;
  rvm_packed_function function;
  void *self;
  return rvm_function_find(name, &function, &self);
}

/* Grows `entries` for one more entry.  Returns 0 if there is no memory.  The caller must hold the lock. */
static int32_t entries_grow(void) {
  if (entry_count < entry_capacity) return 1;
  int32_t capacity = entry_capacity ? entry_capacity * 2 : 16;
  entry *grown = rvm_grow(entries, entry_count, capacity, sizeof *grown);
  if (!grown) return 0;
  entries = grown;
  entry_capacity = capacity;
  return 1;
}

/* Adds or replaces an entry, which takes ownership of `name` on success.  The caller must hold the lock. */
static rvm_status entry_put(char *name, rvm_packed_function function, void *self, int32_t replace, rvm_value *error) {
  int32_t found, position = entry_position(name, &found);
  if (found && !replace) return rvm_fail(error, RVM_BUSY, "register: the name \"%s\" is already registered", name);
  if (found) {
    rvm_free(entries[position].name);
  } else {
    if (!entries_grow()) return rvm_out_of_memory(error);
    memmove(&entries[position + 1], &entries[position], (size_t)(entry_count - position) * sizeof *entries);
    entry_count++;
  }
  entries[position] = (entry){.name = name, .function = function, .self = self};
  return RVM_OK;
}

rvm_status rvm_register(const char *name, rvm_packed_function function, void *self, int32_t replace, rvm_value *error) {
  RVM_EXPECT_POINTER(name, error);
  RVM_EXPECT_POINTER(function, error);
  if (rvm_is_builtin_name(name))
    return rvm_fail(
        error, RVM_BUSY,
        "register: \"%s\": names that begin with " RVM_BUILTIN_PREFIX " belong to builtins; choose another name", name);
  size_t name_bytes = strlen(name) + 1;
  char *copy = rvm_allocate(name_bytes);
  if (!copy) return rvm_out_of_memory(error);
  memcpy(copy, name, name_bytes);
  rvm_mutex_lock(&lock);
  rvm_status status = entry_put(copy, function, self, replace, error);
  rvm_mutex_unlock(&lock);
  if (status) rvm_free(copy);
  return status;
}

rvm_status rvm_unregister(const char *name, rvm_value *error) {
  RVM_EXPECT_POINTER(name, error);
  int32_t found;
  rvm_mutex_lock(&lock);
  int32_t position = entry_position(name, &found);
  if (found) {
    rvm_free(entries[position].name);
    entry_count--;
    memmove(&entries[position], &entries[position + 1], (size_t)(entry_count - position) * sizeof *entries);
  }
  if (entry_count == 0) {
    rvm_free(entries);
    entries = NULL;
    entry_capacity = 0;
  }
  rvm_mutex_unlock(&lock);
  return found ? RVM_OK : rvm_fail_unknown(name, error);
}

/* ---- suggestions for unknown names ---- */

/* The number of names that are suggested, and the size of the longest with its NUL. */
enum { NEAR_COUNT = 3, NEAR_BYTES = 96 };

typedef struct near_names {
  int32_t count;
  int32_t distance[NEAR_COUNT];
  char name[NEAR_COUNT][NEAR_BYTES];
} near_names;

/* Returns the Levenshtein distance of two names.  `b` must be shorter than NEAR_BYTES. */
static int32_t edit_distance(const char *a, const char *b) {
  int32_t row[NEAR_BYTES], length = (int32_t)strlen(b);
  for (int32_t j = 0; j <= length; j++) row[j] = j;
  for (int32_t i = 0; a[i]; i++) {
    int32_t diagonal = row[0];
    row[0] = i + 1;
    for (int32_t j = 0; j < length; j++) {
      int32_t best = diagonal + (a[i] != b[j]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
      diagonal = row[j + 1];
      row[j + 1] = best;
    }
  }
  return row[length];
}

/* Inserts `known` into `nearest`, sorted by the edit distance from `name`, unless the list has NEAR_COUNT names that
   are at least as near.  Ignores names that are too different or too long. */
static void near_add(near_names *nearest, const char *name, const char *known) {
  if (strlen(known) >= NEAR_BYTES) return;
  const int32_t distance = edit_distance(name, known);
  const int is_too_different = distance > 2 && distance > (int32_t)strlen(name) / 3;
  if (is_too_different) return;
  int32_t position = nearest->count;
  while (position > 0 && nearest->distance[position - 1] > distance) position--;
  if (position == NEAR_COUNT) return;
  if (nearest->count < NEAR_COUNT) nearest->count++; /* otherwise the last name is overwritten */
  for (int32_t i = nearest->count - 1; i > position; i--) {
    nearest->distance[i] = nearest->distance[i - 1];
    memcpy(nearest->name[i], nearest->name[i - 1], NEAR_BYTES);
  }
  nearest->distance[position] = distance;
  strcpy(nearest->name[position], known);
}

rvm_status rvm_fail_unknown(const char *name, rvm_value *error) {
  const int32_t index = builtin_index(name);
  if (index >= 0 && !rvm_builtins[index])
    return rvm_fail(error, RVM_UNSUPPORTED,
                    "%s: this runtime does not contain the builtin, because it was built without strings "
                    "(RELVM_STRINGS=OFF)",
                    name);
  near_names nearest = {0};
  if (strlen(name) < NEAR_BYTES) {
    for (int32_t i = 0; i < rvm_builtin_row_count; i++) near_add(&nearest, name, rvm_builtin_rows[i].name);
    rvm_mutex_lock(&lock);
    for (int32_t i = 0; i < entry_count; i++) near_add(&nearest, name, entries[i].name);
    rvm_mutex_unlock(&lock);
  }
  const char *listed[NEAR_COUNT] = {"", "", ""};
  for (int32_t i = 0; i < nearest.count; i++) listed[i] = nearest.name[i];
  return rvm_fail(error, RVM_UNKNOWN_FUNCTION, "unknown function \"%s\"%s%s%s%s%s%s%s", name,
                  nearest.count > 0 ? "; did you mean " : "", listed[0], nearest.count > 1 ? ", " : "", listed[1],
                  nearest.count > 2 ? ", " : "", listed[2], nearest.count > 0 ? "?" : "");
}
