/* windows.c: implements system.h for Windows 8 and later. */
#ifdef _WIN32
#define _CRT_RAND_S /* rand_s */
#define WIN32_LEAN_AND_MEAN
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0602
#endif
#endif
#include "cold.h"

#include "system.h"

#ifdef _WIN32
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#ifdef __x86_64__
int rvm_enable_tile_registers(void) { return 0; } /* not implemented */
#endif

void *rvm_pages_map(size_t size_bytes) {
  return VirtualAlloc(NULL, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void rvm_pages_unmap(void *pages, size_t size_bytes) {
  (void)size_bytes;
  if (pages) VirtualFree(pages, 0, MEM_RELEASE);
}

/* Returns a new string in UTF-16, or NULL.  `text` is UTF-8, or if it is not valid UTF-8, in the code page of the
   process, like the arguments of `main`. */
static wchar_t *wide(const char *text) {
  UINT page = CP_UTF8;
  int length = MultiByteToWideChar(page, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
  if (length == 0) length = MultiByteToWideChar(page = CP_ACP, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
  wchar_t *result = length > 0 ? malloc((size_t)length * sizeof *result) : NULL;
  if (result) MultiByteToWideChar(page, MB_ERR_INVALID_CHARS, text, -1, result, length);
  return result;
}

static void describe_failure(char reason[RVM_REASON_BYTES]) {
  const DWORD code = GetLastError();
  snprintf(reason, RVM_REASON_BYTES, "Windows reports error %lu%s", (unsigned long)code,
           code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ? " (file not found)"
           : code == ERROR_ACCESS_DENIED                                ? " (access denied)"
           : code == ERROR_FILE_INVALID                                 ? " (empty file)"
                                                                        : "");
}

const void *rvm_path_map(const char *path, int64_t *size_bytes, char reason[RVM_REASON_BYTES]) {
  wchar_t *wide_path = wide(path);
  HANDLE file = wide_path ? CreateFileW(wide_path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                                        OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL)
                          : INVALID_HANDLE_VALUE;
  LARGE_INTEGER size;
  HANDLE mapping = NULL;
  const void *bytes = NULL;
  if (file != INVALID_HANDLE_VALUE && GetFileSizeEx(file, &size)) {
    *size_bytes = size.QuadPart;
    mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL); /* fails if the file is empty */
  }
  if (mapping) bytes = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
  if (!bytes) describe_failure(reason);
  if (mapping) CloseHandle(mapping); /* the view keeps the file open */
  if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
  free(wide_path);
  return bytes;
}

void rvm_path_unmap(const void *bytes, int64_t size_bytes) {
  (void)size_bytes;
  if (bytes) UnmapViewOfFile(bytes);
}

int64_t rvm_clock_now(void) {
  LARGE_INTEGER frequency, ticks;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&ticks);
  const int64_t per_second = frequency.QuadPart, seconds = ticks.QuadPart / per_second;
  return seconds * 1000000000 + ticks.QuadPart % per_second * 1000000000 / per_second;
}

int rvm_random_bytes(void *bytes, size_t size_bytes) {
  for (size_t done = 0; done < size_bytes;) {
    unsigned word;
    const size_t part = size_bytes - done < sizeof word ? size_bytes - done : sizeof word;
    if (rand_s(&word) != 0) return 0;
    memcpy((char *)bytes + done, &word, part);
    done += part;
  }
  return 1;
}

#ifdef __aarch64__
uint64_t rvm_hwcaps(void) {
  return IsProcessorFeaturePresent(PF_ARM_V8_CRC32_INSTRUCTIONS_AVAILABLE) ? RVM_HWCAP_CRC32 : 0;
}
#endif

/* ---- threads ---- */

_Static_assert(sizeof(rvm_mutex) == sizeof(SRWLOCK) && sizeof(rvm_condition) == sizeof(CONDITION_VARIABLE),
               "a lock of Windows is one pointer, which is NULL at first");

void rvm_mutex_lock(rvm_mutex *mutex) { AcquireSRWLockExclusive((SRWLOCK *)mutex); }
void rvm_mutex_unlock(rvm_mutex *mutex) { ReleaseSRWLockExclusive((SRWLOCK *)mutex); }
int rvm_mutex_try_lock(rvm_mutex *mutex) { return TryAcquireSRWLockExclusive((SRWLOCK *)mutex) != 0; }
void rvm_condition_wait(rvm_condition *condition, rvm_mutex *mutex) {
  SleepConditionVariableSRW((CONDITION_VARIABLE *)condition, (SRWLOCK *)mutex, INFINITE, 0);
}
void rvm_condition_wake_all(rvm_condition *condition) { WakeAllConditionVariable((CONDITION_VARIABLE *)condition); }
void rvm_thread_yield(void) { SwitchToThread(); }

size_t rvm_thread_stack(const char **lowest) {
  ULONG_PTR low, high;
  GetCurrentThreadStackLimits(&low, &high);
  *lowest = (const char *)low; /* NOLINT(performance-no-int-to-ptr) */
  return (size_t)(high - low);
}

int32_t rvm_thread_processor(void) { return -1; }

int rvm_thread_avoid(int32_t processor) {
  (void)processor;
  return 1;
}

static DWORD WINAPI run_thread(void *work) {
  void (*function)(void);
  memcpy(&function, &work, sizeof function);
  function();
  return 0;
}

/* Pins the library that contains this code, because a thread must not outlive its code. */
int rvm_thread_start(rvm_thread *thread, void (*work)(void), size_t stack_bytes) {
  static const char here = 0;
  HMODULE library;
  void *argument;
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCWSTR)&here,
                          &library))
    return 0;
  memcpy(&argument, &work, sizeof argument);
  *thread = CreateThread(NULL, stack_bytes, run_thread, argument, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
  return *thread != NULL;
}

void rvm_thread_join(rvm_thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

void rvm_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  (void)before, (void)in_parent, (void)in_child;
}

/* ---- shared libraries ---- */

#define FILE_PREFIX L"relvm-native-"
enum { PATH_LENGTH = MAX_PATH + 64, ATTEMPTS = 8 };

/* Removes the libraries that processes left in the folder when they ended.  Libraries that are in use cannot be
   removed. */
static void remove_unused(const wchar_t *folder) {
  wchar_t path[2 * PATH_LENGTH];
  WIN32_FIND_DATAW entry;
  swprintf(path, PATH_LENGTH, L"%ls" FILE_PREFIX L"*.dll", folder);
  HANDLE search = FindFirstFileW(path, &entry);
  if (search == INVALID_HANDLE_VALUE) return;
  do {
    if (swprintf(path, PATH_LENGTH, L"%ls%ls", folder, entry.cFileName) > 0) DeleteFileW(path);
  } while (FindNextFileW(search, &entry));
  FindClose(search);
}

/* Creates a file for a library in the user's folder of temporary files, and stores its path. */
static HANDLE create_file(wchar_t path[PATH_LENGTH]) {
  wchar_t folder[MAX_PATH + 1];
  const DWORD length = GetTempPathW(MAX_PATH + 1, folder);
  if (length == 0 || length > MAX_PATH) return INVALID_HANDLE_VALUE;
  remove_unused(folder);
  HANDLE file = INVALID_HANDLE_VALUE;
  for (int i = 0; file == INVALID_HANDLE_VALUE && i < ATTEMPTS; i++) {
    unsigned number[2];
    if (!rvm_random_bytes(number, sizeof number)) return file;
    swprintf(path, PATH_LENGTH, L"%ls" FILE_PREFIX L"%08x%08x.dll", folder, number[0], number[1]);
    file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY, NULL);
  }
  return file;
}

static int write_all(HANDLE file, const char *bytes, int64_t size_bytes) {
  while (size_bytes > 0) {
    const DWORD part = size_bytes < (1 << 30) ? (DWORD)size_bytes : 1 << 30;
    DWORD written;
    if (!WriteFile(file, bytes, part, &written, NULL) || written == 0) return 0;
    bytes += written;
    size_bytes -= written;
  }
  return 1;
}

/* Writes the library to a file, opens the file so that nobody else can write to it, and loads it.  The file stays open
   until the library is closed, which removes it.  Libraries on which the library depends are loaded only from the
   system's folder. */
rvm_status rvm_library_load(rvm_library *library, const void *bytes, int64_t size_bytes,
                            char reason[RVM_REASON_BYTES]) {
  wchar_t path[PATH_LENGTH];
  HANDLE file = create_file(path);
  if (file == INVALID_HANDLE_VALUE) {
    strcpy(reason, "cannot create a temporary file; set TMP to a writable folder");
    return RVM_UNSUPPORTED;
  }
  const int is_written = write_all(file, bytes, size_bytes);
  CloseHandle(file);
  file = CreateFileW(path, GENERIC_READ | DELETE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
  library->file = (intptr_t)file; /* INVALID_HANDLE_VALUE is negative */
  if (!is_written || file == INVALID_HANDLE_VALUE) {
    strcpy(reason, "cannot write a temporary file; check the free space of TMP");
    return RVM_OUT_OF_MEMORY;
  }
  library->handle = LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (library->handle) return RVM_OK;
  snprintf(reason, RVM_REASON_BYTES, "Windows cannot load the library (error %lu)", (unsigned long)GetLastError());
  return RVM_UNSUPPORTED;
}

void *rvm_library_find(const rvm_library *library, const char *symbol) {
  const FARPROC function = GetProcAddress((HMODULE)library->handle, symbol);
  void *address;
  memcpy(&address, &function, sizeof address);
  return address;
}

void rvm_library_close(rvm_library *library) {
  if (library->handle) FreeLibrary((HMODULE)library->handle);
  if (library->file >= 0) {
    FILE_DISPOSITION_INFO removal = {.DeleteFile = TRUE};
    SetFileInformationByHandle((HANDLE)library->file, FileDispositionInfo, &removal, sizeof removal);
    CloseHandle((HANDLE)library->file);
  }
  *library = (rvm_library)RVM_LIBRARY_CLOSED;
}
#endif
