/* compact_functions.h: functions of unsigned elements that have the bits of those of signed elements.  The compact
   runtime (RVM_COMPACT) has only the latter. */
#ifndef RELVM_COMPACT_FUNCTIONS_H
#define RELVM_COMPACT_FUNCTIONS_H

#define add_u8 add_i8
#define add_u16 add_i16
#define add_u32 add_i32
#define add_u64 add_i64
#define sub_u8 sub_i8
#define sub_u16 sub_i16
#define sub_u32 sub_i32
#define sub_u64 sub_i64
#define mul_u8 mul_i8
#define mul_u16 mul_i16
#define mul_u32 mul_i32
#define mul_u64 mul_i64
#define and_u8 and_i8
#define and_u16 and_i16
#define and_u32 and_i32
#define and_u64 and_i64
#define or_u8 or_i8
#define or_u16 or_i16
#define or_u32 or_i32
#define or_u64 or_i64
#define xor_u8 xor_i8
#define xor_u16 xor_i16
#define xor_u32 xor_i32
#define xor_u64 xor_i64
#define shl_u8 shl_i8
#define shl_u16 shl_i16
#define shl_u32 shl_i32
#define shl_u64 shl_i64
#define eq_u8 eq_i8
#define eq_u16 eq_i16
#define eq_u32 eq_i32
#define eq_u64 eq_i64
#define ne_u8 ne_i8
#define ne_u16 ne_i16
#define ne_u32 ne_i32
#define ne_u64 ne_i64
#define neg_u8 neg_i8
#define neg_u16 neg_i16
#define neg_u32 neg_i32
#define neg_u64 neg_i64

#endif
