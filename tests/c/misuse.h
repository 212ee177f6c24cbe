/* misuse.h: calls with a wrong argument, each named by its parameter.  They use `slot`, a value for results and errors.
 */
#ifndef RELVM_TEST_MISUSE_H
#define RELVM_TEST_MISUSE_H

/* A call with a wrong `parameter`: its status, and a part of the message. */
#define WRONG(function, parameter, status, text, ...) CHECK_FAILS(function(__VA_ARGS__), status, text, slot)
/* The same of a function that leaves no message, be it that the slot is NULL, and what it returns. */
#define RETURNS(function, parameter, answer, ...) CHECK_INT(function(__VA_ARGS__), answer)
#define RETURNS_NULL(function, parameter, ...) CHECK(function(__VA_ARGS__) == NULL)
/* The same of one that returns a struct. */
#define GIVES(function, parameter, field, answer, ...) CHECK_INT(function(__VA_ARGS__).field, answer)
/* The same of a void function. */
#define IGNORES(function, parameter, ...) function(__VA_ARGS__)
/* A parameter of which no value is wrong, or whose wrong ones relvm.h lists as not checked. */
#define ANY(function, parameter) ((void)0)

#endif
