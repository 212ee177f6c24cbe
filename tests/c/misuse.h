/* misuse.h: calls with an invalid argument, each with the name of its parameter.  They use `slot`, a value for results
   and errors. */
#ifndef RELVM_TEST_MISUSE_H
#define RELVM_TEST_MISUSE_H

/* Checks a call with an invalid `parameter`: its status, and a part of the message. */
#define WRONG(function, parameter, status, text, ...) CHECK_FAILS(function(__VA_ARGS__), status, text, slot)
/* Checks the return value of a call with an invalid `parameter` that stores no message, because the function cannot or
   the slot is NULL. */
#define RETURNS(function, parameter, answer, ...) CHECK_INT(function(__VA_ARGS__), answer)
#define RETURNS_NULL(function, parameter, ...) CHECK(function(__VA_ARGS__) == NULL)
/* Checks a member of the struct that a call with an invalid `parameter` returns. */
#define GIVES(function, parameter, field, answer, ...) CHECK_INT(function(__VA_ARGS__).field, answer)
/* Calls a void function with an invalid `parameter`. */
#define IGNORES(function, parameter, ...) function(__VA_ARGS__)
/* Declares that every value of a parameter is valid, or that relvm.h lists the invalid ones as unchecked. */
#define ANY(function, parameter) ((void)0)

#endif
