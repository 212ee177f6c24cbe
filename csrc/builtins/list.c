/* list.c: builtins on lists.  A builtin does not modify the list that it gets, except that list_push appends to the
   list if there is no other reference to it.  Tuples are accepted as lists. */
#include "arguments.h"
#include "elements.h"

/* ---- lists ---- */

RVM_BUILTIN(make_list) {
  RVM_CHECK(make_list, "a*");
  return rvm_list_of(count, arguments, result);
}

RVM_BUILTIN(list_length) {
  RVM_CHECK(list_length, "l");
  int32_t size;
  rvm_value_items(arguments[0], &size);
  *result = rvm_int(size);
  return RVM_OK;
}

/* Converts an index, which counts from the end if it is negative, to a position in [0, size + past).  Fails with
   INDEX_ERROR if the position is out of this range. */
static rvm_status resolve_index(const char *name, int64_t index, int32_t size, int32_t past, int64_t *position,
                                rvm_value *result) {
  *position = index < 0 ? index + size : index;
  if (*position >= 0 && *position < size + (int64_t)past) return RVM_OK;
  return rvm_fail(result, RVM_INDEX_ERROR, "vm.builtin.%s: index %lld is out of range; the list has %d item%s", name,
                  (long long)index, size, RVM_PLURAL(size));
}

RVM_BUILTIN(list_item) {
  RVM_CHECK(list_item, "li");
  int32_t size;
  int64_t position;
  const rvm_value *items = rvm_value_items(arguments[0], &size);
  rvm_status status = resolve_index("list_item", arguments[1].as.i, size, 0, &position, result);
  if (status) return status;
  *result = items[position];
  rvm_retain(*result);
  return RVM_OK;
}

/* Appends `count` items to a list with spare capacity, and charges the work. */
static rvm_status append_items(rvm_machine *machine, rvm_list *list, const rvm_value *items, int64_t count,
                               rvm_value *error) {
  enum { CHUNK = 4096 };
  for (int64_t first = 0; first < count; first += CHUNK) {
    int64_t end = count - first < CHUNK ? count : first + CHUNK;
    for (int64_t i = first; i < end; i++) rvm_list_add(list, items[i]);
    rvm_status status = rvm_spend(machine, end - first, error);
    if (status) return status;
  }
  return RVM_OK;
}

/* Creates a list of the items before `position`, then `added` if it is not NULL, then the items from `next` on. */
static rvm_status copy_with_change(rvm_value list, int64_t position, const rvm_value *added, int64_t next,
                                   rvm_value *result) {
  int32_t size;
  const rvm_value *items = rvm_value_items(list, &size);
  int64_t length = position + (added != NULL) + (size - next);
  if (length > INT32_MAX) return rvm_out_of_memory(result);
  rvm_machine *machine = rvm_machine_running();
  rvm_status status = rvm_list_allocate(length, result);
  if (status) return status;
  rvm_value changed = *result;
  status = append_items(machine, changed.as.list, items, position, result);
  if (!status && added) rvm_list_add(changed.as.list, *added);
  if (!status && next < size) status = append_items(machine, changed.as.list, items + next, size - next, result);
  if (status) rvm_release(&changed);
  return status;
}

RVM_BUILTIN(list_append) {
  RVM_CHECK(list_append, "la");
  int32_t size;
  rvm_value_items(arguments[0], &size);
  return copy_with_change(arguments[0], size, &arguments[1], size, result);
}

/* Ensures that the list has capacity for one more item.  The capacity grows by half, so that n pushes cost O(n). */
static rvm_status grow(rvm_list *list, rvm_value *result) {
  if (list->size < list->capacity) return RVM_OK;
  if (list->size == INT32_MAX) return rvm_out_of_memory(result);
  int64_t capacity = list->capacity + list->capacity / 2 + 4;
  void *items = list->items;
  rvm_status status = rvm_grow_array(rvm_machine_running(), &items, list->size, capacity, sizeof *list->items, result);
  if (status) return status;
  list->items = items;
  list->capacity = capacity;
  return RVM_OK;
}

/* Appends in place only if this cannot make the list contain itself.  A list with a single reference is not inside the
   item, but it can be the item. */
RVM_BUILTIN(list_push) {
  RVM_CHECK(list_push, "la");
  rvm_value list = arguments[0], item = arguments[1];
  int is_item = rvm_value_is_object(item) && item.as.object == list.as.object;
  if (list.tag != RVM_TAG_LIST || list.as.list->base.references != 1 || is_item)
    return rvm_builtin_list_append(self, arguments, count, result);
  rvm_status status = grow(list.as.list, result);
  if (status) return status;
  rvm_list_add(list.as.list, item);
  rvm_retain(list);
  *result = list;
  return RVM_OK;
}

/* Copies the list arguments[0] with a change at index arguments[1].  Inserts `added` before the item at the index, or
   removes the item if `added` is NULL. */
static rvm_status change_item(const char *name, const rvm_value *arguments, const rvm_value *added, rvm_value *result) {
  int32_t size;
  int64_t position;
  rvm_value_items(arguments[0], &size);
  rvm_status status = resolve_index(name, arguments[1].as.i, size, added != NULL, &position, result);
  return status ? status : copy_with_change(arguments[0], position, added, position + (added == NULL), result);
}

RVM_BUILTIN(list_insert) {
  RVM_CHECK(list_insert, "lia");
  return change_item("list_insert", arguments, &arguments[2], result);
}

RVM_BUILTIN(list_erase) {
  RVM_CHECK(list_erase, "li");
  return change_item("list_erase", arguments, NULL, result);
}

/* ---- nil ---- */

RVM_BUILTIN(is_null) {
  RVM_CHECK(is_null, "a");
  *result = rvm_bool(arguments[0].tag == RVM_TAG_NIL);
  return RVM_OK;
}

/* ---- lists of tensors ---- */

/* Returns the product of the dimensions in [first, end). */
static int64_t product(const int64_t *dims, int32_t first, int32_t end) {
  int64_t total = 1;
  for (int32_t i = first; i < end; i++) total *= dims[i];
  return total;
}

/* Converts an axis, which counts from the end if it is negative, to a position in [0, rank).  Fails with TYPE_ERROR,
   and stores 0, if the axis is out of range. */
static rvm_status resolve_axis(const char *name, int64_t axis, int32_t rank, int32_t *position, rvm_value *result) {
  *position = 0;
  if (axis < -(int64_t)rank || axis >= rank)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.%s: axis %lld is outside [-%d, %d)", name, (long long)axis,
                    rank, rank);
  *position = (int32_t)(axis < 0 ? axis + rank : axis);
  return RVM_OK;
}

/* Checks that the tensors of a list can be concatenated along `axis`, or stacked along a new axis if `stacked`, and
   stores the dimensions of the result in `dims`, which has space for the new axis.  Fails with TYPE_ERROR or
   SHAPE_ERROR. */
static rvm_status check_parts(const char *name, const rvm_value *items, int32_t size, int stacked, int32_t axis,
                              int64_t *dims, rvm_value *result) {
  rvm_machine *machine = rvm_machine_running();
  const rvm_tensor *first = items[0].as.tensor;
  int32_t rank = first->dl.ndim;
  char text[RVM_DESCRIPTION_BYTES];
  for (int32_t i = 0, j = 0; i < rank + stacked; i++) dims[i] = stacked && i == axis ? size : first->dl.shape[j++];
  for (int32_t k = 1; k < size; k++) {
    const rvm_tensor *part = items[k].as.tensor;
    if (items[k].tag != RVM_TAG_TENSOR || part->dtype != first->dtype || part->dl.ndim != rank)
      return rvm_fail(result, RVM_TYPE_ERROR,
                      "vm.builtin.%s: item %d is %s, but item 0 is a tensor of rank %d and dtype %s", name, k,
                      rvm_value_describe(items[k], text), rank, rvm_dtype_name(first->dtype));
    for (int32_t i = 0; i < rank; i++) {
      if (!stacked && i == axis) continue;
      if (part->dl.shape[i] != first->dl.shape[i])
        return rvm_fail(result, RVM_SHAPE_ERROR,
                        "vm.builtin.%s: dimension %d of item %d is %lld, but that of item 0 is %lld", name, i, k,
                        (long long)part->dl.shape[i], (long long)first->dl.shape[i]);
    }
    if (!stacked && !rvm_add(dims[axis], part->dl.shape[axis], &dims[axis]))
      return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.%s: the size of the result exceeds 64 bits", name);
    rvm_status status = rvm_spend(machine, 1 + rank / 8, result);
    if (status) return status;
  }
  return RVM_OK;
}

/* Copies the elements of `size` tensors to `joined`: concatenated along `axis`, or stacked along a new axis if
   `stacked`. */
static rvm_status copy_parts(rvm_machine *machine, const rvm_value *items, int32_t size, int stacked, int32_t axis,
                             rvm_tensor *joined, rvm_value *error) {
  const int64_t *dims = joined->dl.shape;
  int64_t step_bytes = product(dims, axis + 1, joined->dl.ndim) * rvm_dtype_size_bytes(joined->dtype);
  int64_t outer = rvm_tensor_size_bytes(joined) > 0 ? product(dims, 0, axis) : 0;
  unsigned char *dst = joined->dl.data;
  rvm_status status = RVM_OK;
  for (int64_t o = 0; o < outer; o++) {
    for (int32_t k = 0; k < size && !status; k++) {
      const rvm_dltensor *part = &items[k].as.tensor->dl;
      size_t bytes = (size_t)((stacked ? 1 : part->shape[axis]) * step_bytes);
      const unsigned char *src = (const unsigned char *)part->data + (size_t)o * bytes;
      status =
          bytes > 0 ? rvm_copy_elements(machine, joined->dtype, dst, src, bytes, error) : rvm_spend(machine, 1, error);
      dst += bytes;
    }
    if (status) return status;
  }
  return status;
}

/* Implements list_concat and, if `stacked`, list_stack. */
static rvm_status join(const char *name, const rvm_value *arguments, int stacked, rvm_value *result) {
  int32_t size, axis;
  char text[RVM_DESCRIPTION_BYTES];
  const rvm_value *items = rvm_value_items(arguments[1], &size);
  if (size == 0) return rvm_fail(result, RVM_INDEX_ERROR, "vm.builtin.%s: the list has no items", name);
  if (items[0].tag != RVM_TAG_TENSOR)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.%s: item 0 is %s, expected a tensor", name,
                    rvm_value_describe(items[0], text));
  int32_t rank = items[0].as.tensor->dl.ndim, dtype = items[0].as.tensor->dtype;
  rvm_status status = resolve_axis(name, arguments[2].as.i, rank + stacked, &axis, result);
  if (status) return status;
  int64_t dims[RVM_MAX_RANK + 1];
  rvm_machine *machine = arguments[0].as.machine;
  if ((status = check_parts(name, items, size, stacked, axis, dims, result))) return status;
  if ((status = rvm_machine_tensor_new(machine, dtype, rank + stacked, dims, result))) return status;
  rvm_value joined = *result;
  status = copy_parts(machine, items, size, stacked, axis, joined.as.tensor, result);
  if (status) rvm_release(&joined);
  return status;
}

RVM_BUILTIN(list_concat) {
  RVM_CHECK(list_concat, "cli");
  return join("list_concat", arguments, /*stacked=*/0, result);
}

RVM_BUILTIN(list_stack) {
  RVM_CHECK(list_stack, "cli");
  return join("list_stack", arguments, /*stacked=*/1, result);
}

/* Creates a tensor of the positions [first, first + size) of `tensor` along an axis, and appends it to the list.  If
   `dropped`, the new tensor does not have the axis. */
static rvm_status append_part(rvm_machine *machine, const rvm_tensor *tensor, int32_t axis, int64_t first, int64_t size,
                              int dropped, rvm_list *list, rvm_value *error) {
  int32_t rank = tensor->dl.ndim;
  int64_t dims[RVM_MAX_RANK];
  for (int32_t i = 0, j = 0; i < rank; i++) {
    if (i != axis) dims[j++] = tensor->dl.shape[i];
    if (i == axis && !dropped) dims[j++] = size;
  }
  rvm_value part;
  rvm_status status = rvm_machine_tensor_new(machine, tensor->dtype, rank - dropped, dims, &part);
  if (status) {
    *error = part;
    return status;
  }
  int64_t outer = rvm_tensor_size_bytes(part.as.tensor) > 0 ? product(tensor->dl.shape, 0, axis) : 0;
  if (outer > 0) {
    size_t step = (size_t)(product(tensor->dl.shape, axis + 1, rank) * rvm_dtype_size_bytes(tensor->dtype));
    size_t part_bytes = (size_t)size * step, row_bytes = (size_t)tensor->dl.shape[axis] * step;
    const unsigned char *src = (const unsigned char *)tensor->dl.data + (size_t)first * step;
    unsigned char *dst = part.as.tensor->dl.data;
    for (int64_t o = 0; o < outer && !status; o++)
      status = rvm_copy_elements(machine, tensor->dtype, dst + (size_t)o * part_bytes, src + (size_t)o * row_bytes,
                                 part_bytes, error);
  }
  if (!status) rvm_list_add(list, part);
  rvm_release(&part);
  return status ? status : rvm_spend(machine, 1 + rank / 8, error);
}

/* Stores a list of `part_count` parts of a tensor along an axis in *result.  Part k has sizes[k] positions.  If `sizes`
   is NULL, each part has part_size positions, except the last one, which has the remaining positions.  If `dropped`,
   the parts do not have the axis. */
static rvm_status split(rvm_machine *machine, const rvm_tensor *tensor, int32_t axis, const int64_t *sizes,
                        int64_t part_count, int64_t part_size, int dropped, rvm_value *result) {
  int64_t extent = tensor->dl.shape[axis], first = 0;
  if (part_count > INT32_MAX) return rvm_out_of_memory(result);
  rvm_status status = rvm_list_allocate(part_count, result);
  if (status) return status;
  rvm_value list = *result;
  for (int64_t k = 0; k < part_count && !status; k++) {
    const int64_t rest = extent - first, default_size = part_size < rest ? part_size : rest;
    const int64_t size = sizes ? sizes[k] : default_size;
    status = append_part(machine, tensor, axis, first, size, dropped, list.as.list, result);
    first += size;
  }
  if (status) rvm_release(&list);
  return status;
}

RVM_BUILTIN(list_split) {
  RVM_CHECK(list_split, "ctzi");
  const rvm_tensor *tensor = arguments[1].as.tensor;
  int32_t axis;
  rvm_status status = resolve_axis("list_split", arguments[3].as.i, tensor->dl.ndim, &axis, result);
  if (status) return status;
  rvm_machine *machine = arguments[0].as.machine;
  int64_t extent = tensor->dl.shape[axis], total = 0;
  if (arguments[2].tag == RVM_TAG_INT) {
    int64_t part_size = arguments[2].as.i;
    if (part_size <= 0)
      return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.list_split: expected a part size of at least 1, got %lld",
                      (long long)part_size);
    const int64_t part_count = extent / part_size + (extent % part_size != 0);
    return split(machine, tensor, axis, NULL, part_count, part_size, /*dropped=*/0, result);
  }
  const rvm_shape *sizes = arguments[2].as.shape;
  if ((status = rvm_spend(machine, sizes->rank, result))) return status;
  for (int32_t k = 0; k < sizes->rank; k++) {
    if (sizes->dims[k] < 0 || !rvm_add(total, sizes->dims[k], &total))
      return rvm_fail(
          result, RVM_SHAPE_ERROR,
          "vm.builtin.list_split: the size of part %d is %lld; expected at least 0 and a sum within 64 bits", k,
          (long long)sizes->dims[k]);
  }
  if (total != extent)
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "vm.builtin.list_split: the part sizes add up to %lld, but the axis has size %lld",
                    (long long)total, (long long)extent);
  return split(machine, tensor, axis, sizes->dims, sizes->rank, /*part_size=*/0, /*dropped=*/0, result);
}

RVM_BUILTIN(list_unstack) {
  RVM_CHECK(list_unstack, "cti");
  const rvm_tensor *tensor = arguments[1].as.tensor;
  int32_t axis;
  rvm_status status = resolve_axis("list_unstack", arguments[2].as.i, tensor->dl.ndim, &axis, result);
  if (status) return status;
  const int64_t part_count = tensor->dl.shape[axis];
  return split(arguments[0].as.machine, tensor, axis, NULL, part_count, /*part_size=*/1, /*dropped=*/1, result);
}
