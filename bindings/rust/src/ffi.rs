//! The declarations of csrc/include/relvm.h that the crate uses.  tests/c/abi.txt lists their layouts.

use std::os::raw::{c_char, c_void};

pub const TAG_NIL: i64 = 0;
pub const OK: i32 = 0;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub tag: i64,
    pub object: *mut c_void, // all members of the union `as` have 64 bits
}

impl Value {
    pub const NIL: Value = Value { tag: TAG_NIL, object: std::ptr::null_mut() };
}

#[repr(C)]
pub struct Object {
    pub tag: i32,
    pub references: i32,
}

#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub dtype: [u8; 4],
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct Tensor {
    pub base: Object,
    pub dtype: i32,
    pub memory_class: i32,
    pub dl: DlTensor,
}

#[repr(C)]
pub struct Tuple {
    pub base: Object,
    pub size: i32,
    pub memory_class: i32,
    pub items: [Value; 0],
}

#[repr(C)]
pub struct Error {
    pub base: Object,
    pub status: i32,
    pub frames: i32,
    pub message: *mut c_char,
    pub trace: *mut c_char,
}

#[repr(C)]
pub struct LoadOptions {
    pub trust_native: i32,
    pub elsewhere: i32,
    pub check_data: i32,
    pub check_only: i32,
    pub portable: i32,
    pub functions: *const *const c_char,
    pub function_count: i32,
    pub max_bytes: i64,
    pub max_functions: i32,
    pub max_constants: i32,
    pub max_code_words: i32,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub release_argument: *mut c_void,
}

extern "C" {
    pub fn rvm_value_retain(value: Value);
    pub fn rvm_value_release(value: *mut Value);
    pub fn rvm_tensor_new(dtype: i32, rank: i32, dims: *const i64, result: *mut Value) -> i32;
    pub fn rvm_tensor_set_read_only(tensor: Value, error: *mut Value) -> i32;
    pub fn rvm_executable_load(
        bytes: *const c_void,
        size_bytes: i64,
        options: *const LoadOptions,
        executable: *mut *mut c_void,
        error: *mut Value,
    ) -> i32;
    pub fn rvm_executable_release(executable: *mut c_void);
    pub fn rvm_executable_find(executable: *const c_void, name: *const c_char) -> i32;
    pub fn rvm_machine_new(
        executable: *mut c_void,
        options: *const c_void,
        machine: *mut *mut c_void,
        error: *mut Value,
    ) -> i32;
    pub fn rvm_machine_release(machine: *mut c_void) -> i32;
    pub fn rvm_machine_call(
        machine: *mut c_void,
        index: i32,
        arguments: *const Value,
        count: i32,
        result: *mut Value,
    ) -> i32;
}
