//! Run models that relvm has compiled.
//!
//! Tensors and models belong to the thread that made them, because the runtime counts references without atomic
//! operations.  An [`Executable`] can be shared by the models of several threads.

mod ffi;

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_void;
use std::path::Path;
use std::sync::Arc;

const ALIGNMENT: usize = 64;
const TAG_TENSOR: i64 = 7;
const TAG_TUPLE: i64 = 9;
const TAG_ERROR: i64 = 14;
const TYPE_ERROR: i32 = 1;
const SHAPE_ERROR: i32 = 2;
const ARGUMENT_ERROR: i32 = 3;
const UNKNOWN_FUNCTION: i32 = 9;
const UNSUPPORTED: i32 = 11;

/// A failure of the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The number of the status code (csrc/tables/status.def).
    pub status: i32,
    /// What was expected and what was found, with the active calls of the program.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn error(status: i32, message: impl Into<String>) -> Error {
    Error { status, message: message.into() }
}

/// One reference to a value of the runtime.
struct Value(ffi::Value);

impl Value {
    fn nil() -> Value {
        Value(ffi::Value::NIL)
    }

    /// Returns the error that a function has stored in this value, if its status is not OK.
    fn check(self, status: i32) -> Result<Value, Error> {
        if status == ffi::OK {
            return Ok(self);
        }
        if self.0.tag != TAG_ERROR {
            return Err(error(status, format!("relvm: status {status}")));
        }
        // SAFETY: an ERROR value refers to an rvm_error, whose texts end with NUL.
        let text = unsafe {
            let found = &*(self.0.object as *const ffi::Error);
            let mut text = CStr::from_ptr(found.message).to_string_lossy().into_owned();
            if !found.trace.is_null() {
                text.push('\n');
                text.push_str(&CStr::from_ptr(found.trace).to_string_lossy());
            }
            text
        };
        Err(error(status, text))
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        // SAFETY: the value is valid while `self` has a reference.
        unsafe { ffi::rvm_value_retain(self.0) };
        Value(self.0)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: `self` has one reference.
        unsafe { ffi::rvm_value_release(&mut self.0) };
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type of elements.
pub trait Element: Copy + sealed::Sealed {
    /// The row of the dtype in csrc/tables/dtypes.def.
    const DTYPE: i32;
}

macro_rules! elements {
    ($($type:ty = $number:expr),*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: i32 = $number;
        })*
    };
}
elements!(i8 = 1, i16 = 2, i32 = 3, i64 = 4, u8 = 5, u16 = 6, u32 = 7, u64 = 8, f32 = 9, f64 = 10);

/// A tensor whose elements do not change.  Clones refer to the same elements.
#[derive(Clone)]
pub struct Tensor {
    value: Value,
    _owner: Option<Arc<Loaded>>, // released after the value, which can be a constant of the executable
}

impl Tensor {
    /// Creates a tensor with a copy of `elements`, in row-major order.
    pub fn new<T: Element>(shape: &[i64], elements: &[T]) -> Result<Tensor, Error> {
        let mut value = Value::nil();
        // SAFETY: the dims are valid during the call, and the result is released by `value`.
        let status = unsafe { ffi::rvm_tensor_new(T::DTYPE, shape.len() as i32, shape.as_ptr(), &mut value.0) };
        let tensor = Tensor { value: value.check(status)?, _owner: None };
        if tensor.len() != elements.len() {
            let (expected, found) = (tensor.len(), elements.len());
            return Err(error(SHAPE_ERROR, format!("tensor: expected {expected} elements for its shape, got {found}")));
        }
        let mut failure = Value::nil();
        // SAFETY: the new tensor has memory for these elements, and nothing else refers to it.
        let status = unsafe {
            let data = tensor.tensor().dl.data as *mut T;
            std::ptr::copy_nonoverlapping(elements.as_ptr(), data, elements.len());
            ffi::rvm_tensor_set_read_only(tensor.value.0, &mut failure.0)
        };
        failure.check(status)?;
        Ok(tensor)
    }

    fn from_value(value: Value, owner: &Arc<Loaded>) -> Result<Tensor, Error> {
        if value.0.tag != TAG_TENSOR {
            return Err(error(TYPE_ERROR, "the model has an output that is not a tensor"));
        }
        let mut failure = Value::nil();
        // SAFETY: the value is a tensor.  A later run that takes it as an input must not change the elements.
        let status = unsafe { ffi::rvm_tensor_set_read_only(value.0, &mut failure.0) };
        failure.check(status)?;
        Ok(Tensor { value, _owner: Some(Arc::clone(owner)) })
    }

    fn tensor(&self) -> &ffi::Tensor {
        // SAFETY: a TENSOR value refers to an rvm_tensor, which exists while `self` has a reference.
        unsafe { &*(self.value.0.object as *const ffi::Tensor) }
    }

    /// Returns the sizes of the axes.
    pub fn shape(&self) -> &[i64] {
        let dl = &self.tensor().dl;
        // SAFETY: `shape` has `ndim` sizes.  It can be NULL only if there are none.
        if dl.ndim == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(dl.shape, dl.ndim as usize) }
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().map(|&size| size as usize).product()
    }

    /// Returns whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements.  Fails if T is not their type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], Error> {
        if self.tensor().dtype != T::DTYPE {
            let (found, expected) = (self.tensor().dtype, T::DTYPE);
            return Err(error(TYPE_ERROR, format!("tensor: its dtype has the number {found}, expected {expected}")));
        }
        if self.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: the runtime aligns the elements, which are compact, and no program may change them.
        Ok(unsafe { std::slice::from_raw_parts(self.tensor().dl.data as *const T, self.len()) })
    }
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u8; ALIGNMENT]);

struct Loaded {
    executable: *mut c_void,
    _bytes: Vec<Block>, // which the executable uses in place
}

// SAFETY: an executable does not change after it is loaded, and its reference count is atomic.
unsafe impl Send for Loaded {}
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: all models and tensors that use the executable own an Arc of this struct.
        unsafe { ffi::rvm_executable_release(self.executable) };
    }
}

/// A loaded executable.  Models on several threads can share it.
#[derive(Clone)]
pub struct Executable(Arc<Loaded>);

impl Executable {
    /// Loads a .rvm file.
    ///
    /// `trust_native`: whether the file may contain native code, which can do anything that the process can.  If this
    /// computer cannot run this code, or it is not trusted, the portable program of the file is loaded, if it has one.
    pub fn load(path: impl AsRef<Path>, trust_native: bool) -> Result<Executable, Error> {
        let path = path.as_ref();
        let content = std::fs::read(path)
            .map_err(|failure| error(ARGUMENT_ERROR, format!("{}: {failure}", path.display())))?;
        Executable::from_bytes(&content, trust_native)
    }

    /// Loads the bytes of a .rvm file, which are copied.  See [`Executable::load`].
    pub fn from_bytes(content: &[u8], trust_native: bool) -> Result<Executable, Error> {
        let mut bytes = vec![Block([0; ALIGNMENT]); content.len() / ALIGNMENT + 1];
        // SAFETY: the blocks have at least the size of the content.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), bytes.as_mut_ptr() as *mut u8, content.len()) };
        let mut options = ffi::LoadOptions {
            trust_native: trust_native as i32,
            elsewhere: 0,
            check_data: 1,
            check_only: 0,
            portable: 0,
            functions: std::ptr::null(),
            function_count: 0,
            max_bytes: 0,
            max_functions: 0,
            max_constants: 0,
            max_code_words: 0,
            release: None,
            release_argument: std::ptr::null_mut(),
        };
        let mut executable = std::ptr::null_mut();
        let mut load = |options: &ffi::LoadOptions| {
            let mut failure = Value::nil();
            let start = bytes.as_ptr() as *const c_void;
            // SAFETY: the bytes are aligned, and exist as long as the executable (Loaded).
            let status = unsafe {
                ffi::rvm_executable_load(start, content.len() as i64, options, &mut executable, &mut failure.0)
            };
            failure.check(status)
        };
        let mut loaded = load(&options);
        if matches!(&loaded, Err(failure) if failure.status == UNSUPPORTED) {
            options.portable = 1;
            loaded = load(&options).or(loaded);
        }
        loaded?;
        Ok(Executable(Arc::new(Loaded { executable, _bytes: bytes })))
    }
}

/// A function of an executable, with a virtual machine that runs it.
pub struct Model {
    machine: *mut c_void,
    function: i32,
    executable: Executable, // released after the machine
}

impl Model {
    /// Creates a machine for a function of the executable, which is normally "main".
    pub fn new(executable: &Executable, function: &str) -> Result<Model, Error> {
        let unknown = || error(UNKNOWN_FUNCTION, format!("the executable has no function {function}"));
        let name = CString::new(function).map_err(|_| unknown())?;
        // SAFETY: the executable and the name are valid during the calls.
        let index = unsafe { ffi::rvm_executable_find(executable.0.executable, name.as_ptr()) };
        if index < 0 {
            return Err(unknown());
        }
        let (mut machine, mut failure) = (std::ptr::null_mut(), Value::nil());
        let status = unsafe {
            ffi::rvm_machine_new(executable.0.executable, std::ptr::null(), &mut machine, &mut failure.0)
        };
        failure.check(status)?;
        Ok(Model { machine, function: index, executable: executable.clone() })
    }

    /// Runs the model, and returns its outputs.
    pub fn run(&mut self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, Error> {
        let arguments: Vec<ffi::Value> = inputs.iter().map(|input| input.value.0).collect();
        let mut result = Value::nil();
        // SAFETY: the machine borrows the arguments during the call, and only this thread uses it.
        let status = unsafe {
            let count = arguments.len() as i32;
            ffi::rvm_machine_call(self.machine, self.function, arguments.as_ptr(), count, &mut result.0)
        };
        let result = result.check(status)?;
        if result.0.tag != TAG_TUPLE {
            return Ok(vec![Tensor::from_value(result, &self.executable.0)?]);
        }
        // SAFETY: a TUPLE value refers to an rvm_tuple, which has `size` items.
        let items = unsafe {
            let tuple = result.0.object as *const ffi::Tuple;
            std::slice::from_raw_parts(std::ptr::addr_of!((*tuple).items) as *const ffi::Value, (*tuple).size as usize)
        };
        items
            .iter()
            .map(|&item| {
                // SAFETY: the tuple has a reference to the item; the new value has its own.
                unsafe { ffi::rvm_value_retain(item) };
                Tensor::from_value(Value(item), &self.executable.0)
            })
            .collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: no run is active, because runs borrow the model.
        unsafe { ffi::rvm_machine_release(self.machine) };
    }
}
