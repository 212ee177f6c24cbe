# For find_package(relvm): the target relvm::relvm is the C runtime, a static library with its headers.  The folder of this
# file is what `relvm config --cmake-dir` prints.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(relvm_package "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(NOT TARGET relvm::relvm)
  add_library(relvm::relvm STATIC IMPORTED)
  set_target_properties(
    relvm::relvm
    PROPERTIES IMPORTED_LOCATION "${relvm_package}/lib/librelvm.a"
               INTERFACE_INCLUDE_DIRECTORIES "${relvm_package}/csrc/include;${relvm_package}/csrc/tables"
               INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
unset(relvm_package)
