/* errors.c: creates error values and appends to their traces. */
#include "cold.h"

#include "errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const rvm_error out_of_memory = {
    .base = {.tag = RVM_TAG_ERROR, .references = -1}, .status = RVM_OUT_OF_MEMORY, .message = (char *)"out of memory"};

rvm_status rvm_out_of_memory(rvm_value *result) {
  const rvm_budget *budget = rvm_budget_refusing();
  if (result) *result = rvm_object_value((rvm_object *)&out_of_memory);
  if (!result || !budget) return RVM_OUT_OF_MEMORY;
  rvm_budget_relax(1); /* the run's budget is exhausted, but the process still has memory for the message */
  rvm_status status;
  if (budget->is_sealed)
    status =
        rvm_fail(result, RVM_OUT_OF_MEMORY,
                 "out of memory: a real-time run needs a block of %lld bytes more than the first run; turn the mode on "
                 "again before a run with larger sizes, and release results inside the machine before the next run",
                 (long long)budget->refused);
  else
    status =
        rvm_fail(result, RVM_OUT_OF_MEMORY,
                 "out of memory: cannot allocate %lld bytes; %lld of %lld bytes (max_bytes) are in use",
                 (long long)budget->refused, (long long)(budget->limit - budget->remaining), (long long)budget->limit);
  rvm_budget_relax(0);
  return status;
}

/* The length at which messages are truncated.  A message may quote a string of any length, and hosts may scan it
   repeatedly. */
enum { MAX_MESSAGE_BYTES = 1 << 16 };

rvm_status rvm_fail(rvm_value *result, rvm_status status, const char *format, ...) {
  if (status <= RVM_OK || status >= RVM_STATUS_COUNT) status = RVM_CALLBACK_ERROR;
  if (!result) return status;
  if (!format) return rvm_fail(result, status, "no message");
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  const int is_cut = length > MAX_MESSAGE_BYTES;
  if (is_cut) length = MAX_MESSAGE_BYTES;
  rvm_error *error = length < 0 ? NULL : rvm_allocate_zeroed(sizeof *error);
  char *message = error ? rvm_allocate((size_t)length + 1) : NULL;
  if (!message) {
    rvm_free(error);
    return rvm_out_of_memory(result);
  }
  va_start(arguments, format);
  vsnprintf(message, (size_t)length + 1, format, arguments);
  va_end(arguments);
  if (is_cut) strcpy(message + length - 3, "...");
  error->base = (rvm_object){.tag = RVM_TAG_ERROR, .references = 1};
  error->status = status;
  error->message = message;
  *result = rvm_object_value(&error->base);
  return status;
}

/* A trace is one block with space for RVM_TRACE_LINES lines with truncated names, and for the closing line that counts
   the omitted frames. */
enum {
  TRACE_NAME_BYTES = 80,
  TRACE_LINE_BYTES = TRACE_NAME_BYTES + 50,
  TRACE_BYTES = (RVM_TRACE_LINES + 1) * TRACE_LINE_BYTES
};

void rvm_error_add_frame(rvm_value error, const char *name, int64_t instruction) {
  rvm_error *object = error.as.error;
  if (error.tag != RVM_TAG_ERROR || object->base.references < 0) return;
  if (!object->trace && !(object->trace = rvm_allocate_zeroed(TRACE_BYTES))) return;
  if (++object->frames > RVM_TRACE_LINES) return;
  char *end = object->trace + strlen(object->trace);
  const char *newline = object->frames > 1 ? "\n" : "";
  if (instruction < 0) {
    snprintf(end, TRACE_LINE_BYTES, "%s  in %.*s", newline, TRACE_NAME_BYTES, name);
  } else {
    snprintf(end, TRACE_LINE_BYTES, "%s  in %.*s at instruction %lld", newline, TRACE_NAME_BYTES, name,
             (long long)instruction);
  }
}

void rvm_error_close_trace(rvm_value error) {
  rvm_error *object = error.as.error;
  if (error.tag != RVM_TAG_ERROR || object->frames <= RVM_TRACE_LINES) return;
  char *end = object->trace + strlen(object->trace);
  snprintf(end, TRACE_LINE_BYTES, "\n  ... and %d more", object->frames - RVM_TRACE_LINES);
}

rvm_status rvm_fail_unsound(const char *subject, int32_t index, rvm_value value, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  return rvm_fail(error, RVM_TYPE_ERROR, "%s %d cannot be passed: %s", subject, index, rvm_value_describe(value, text));
}
