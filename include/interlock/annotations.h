/*
 * annotations.h: source annotations, which expand to nothing.
 *
 * A header that defines INTERLOCK_OLD_ANNOTATIONS before it includes this one gets the old forms (__in, __out), too: sal.h and
 * driverspecs.h do, and windows.h in C. In C++ the standard library uses some of these names for variables, so they are defined
 * only with INTERLOCK_SAL1: include its headers first.
 */
#ifndef INTERLOCK_ANNOTATIONS_H
#define INTERLOCK_ANNOTATIONS_H

#include <stddef.h> /* a translation unit of this header alone must declare something */

#ifndef _In_
#define _In_
#endif
#ifndef _In_opt_
#define _In_opt_
#endif
#ifndef _In_z_
#define _In_z_
#endif
#ifndef _In_opt_z_
#define _In_opt_z_
#endif
#ifndef _Out_
#define _Out_
#endif
#ifndef _Out_opt_
#define _Out_opt_
#endif
#ifndef _Inout_
#define _Inout_
#endif
#ifndef _Inout_opt_
#define _Inout_opt_
#endif
#ifndef _Inout_z_
#define _Inout_z_
#endif
#ifndef _Outptr_
#define _Outptr_
#endif
#ifndef _Outptr_opt_
#define _Outptr_opt_
#endif
#ifndef _Outptr_result_maybenull_
#define _Outptr_result_maybenull_
#endif
#ifndef _Outptr_opt_result_maybenull_
#define _Outptr_opt_result_maybenull_
#endif
#ifndef _COM_Outptr_
#define _COM_Outptr_
#endif
#ifndef _Ret_maybenull_
#define _Ret_maybenull_
#endif
#ifndef _Ret_notnull_
#define _Ret_notnull_
#endif
#ifndef _Ret_z_
#define _Ret_z_
#endif
#ifndef _Ret_opt_z_
#define _Ret_opt_z_
#endif
#ifndef _Pre_
#define _Pre_
#endif
#ifndef _Post_
#define _Post_
#endif
#ifndef _Const_
#define _Const_
#endif
#ifndef _Deref_pre_
#define _Deref_pre_
#endif
#ifndef _Deref_post_
#define _Deref_post_
#endif
#ifndef _Reserved_
#define _Reserved_
#endif
#ifndef _Null_terminated_
#define _Null_terminated_
#endif
#ifndef _NullNull_terminated_
#define _NullNull_terminated_
#endif
#ifndef _Notnull_
#define _Notnull_
#endif
#ifndef _Maybenull_
#define _Maybenull_
#endif
#ifndef _Printf_format_string_
#define _Printf_format_string_
#endif
#ifndef _Field_z_
#define _Field_z_
#endif
#ifndef _Pre_notnull_
#define _Pre_notnull_
#endif
#ifndef _Pre_maybenull_
#define _Pre_maybenull_
#endif
#ifndef _Pre_valid_
#define _Pre_valid_
#endif
#ifndef _Pre_opt_valid_
#define _Pre_opt_valid_
#endif
#ifndef _Pre_null_
#define _Pre_null_
#endif
#ifndef _Post_notnull_
#define _Post_notnull_
#endif
#ifndef _Post_valid_
#define _Post_valid_
#endif
#ifndef _Post_invalid_
#define _Post_invalid_
#endif
#ifndef _Post_ptr_invalid_
#define _Post_ptr_invalid_
#endif
#ifndef _Post_z_
#define _Post_z_
#endif
#ifndef _Pre_z_
#define _Pre_z_
#endif
#ifndef _Points_to_data_
#define _Points_to_data_
#endif
#ifndef _Literal_
#define _Literal_
#endif
#ifndef _Notliteral_
#define _Notliteral_
#endif
#ifndef _Must_inspect_result_
#define _Must_inspect_result_
#endif
#ifndef _Check_return_
#define _Check_return_
#endif
#ifndef _Use_decl_annotations_
#define _Use_decl_annotations_
#endif
#ifndef _Frees_ptr_
#define _Frees_ptr_
#endif
#ifndef _Frees_ptr_opt_
#define _Frees_ptr_opt_
#endif
#ifndef _Analysis_noreturn_
#define _Analysis_noreturn_
#endif
#ifndef _Enum_is_bitflag_
#define _Enum_is_bitflag_
#endif
#ifndef _Strict_type_match_
#define _Strict_type_match_
#endif
#ifndef _Interlocked_operand_
#define _Interlocked_operand_
#endif
#ifndef _IRQL_saves_
#define _IRQL_saves_
#endif
#ifndef _IRQL_restores_
#define _IRQL_restores_
#endif
#ifndef _IRQL_is_cancel_
#define _IRQL_is_cancel_
#endif
#ifndef _IRQL_requires_same_
#define _IRQL_requires_same_
#endif
#ifndef _IRQL_uses_cancel_
#define _IRQL_uses_cancel_
#endif
#ifndef _Requires_no_locks_held_
#define _Requires_no_locks_held_
#endif
#ifndef _Kernel_clear_do_init_
#define _Kernel_clear_do_init_
#endif
#ifndef _Global_critical_region_
#define _Global_critical_region_
#endif
#ifndef _Global_priority_region_
#define _Global_priority_region_
#endif
#ifndef _Global_cancel_spin_lock_
#define _Global_cancel_spin_lock_
#endif
#ifndef _Global_interlock_
#define _Global_interlock_
#endif
#ifndef _In_reads_
#define _In_reads_(n)
#endif
#ifndef _In_reads_opt_
#define _In_reads_opt_(n)
#endif
#ifndef _In_reads_bytes_
#define _In_reads_bytes_(n)
#endif
#ifndef _In_reads_bytes_opt_
#define _In_reads_bytes_opt_(n)
#endif
#ifndef _In_reads_z_
#define _In_reads_z_(n)
#endif
#ifndef _In_range_
#define _In_range_(lo, hi)
#endif
#ifndef _Out_writes_
#define _Out_writes_(n)
#endif
#ifndef _Out_writes_opt_
#define _Out_writes_opt_(n)
#endif
#ifndef _Out_writes_bytes_
#define _Out_writes_bytes_(n)
#endif
#ifndef _Out_writes_bytes_opt_
#define _Out_writes_bytes_opt_(n)
#endif
#ifndef _Out_writes_all_
#define _Out_writes_all_(n)
#endif
#ifndef _Out_writes_bytes_all_
#define _Out_writes_bytes_all_(n)
#endif
#ifndef _Out_writes_z_
#define _Out_writes_z_(n)
#endif
#ifndef _Out_writes_to_
#define _Out_writes_to_(n, c)
#endif
#ifndef _Out_writes_to_opt_
#define _Out_writes_to_opt_(n, c)
#endif
#ifndef _Out_writes_bytes_to_
#define _Out_writes_bytes_to_(n, c)
#endif
#ifndef _Out_writes_bytes_to_opt_
#define _Out_writes_bytes_to_opt_(n, c)
#endif
#ifndef _Out_range_
#define _Out_range_(lo, hi)
#endif
#ifndef _Inout_updates_
#define _Inout_updates_(n)
#endif
#ifndef _Inout_updates_opt_
#define _Inout_updates_opt_(n)
#endif
#ifndef _Inout_updates_bytes_
#define _Inout_updates_bytes_(n)
#endif
#ifndef _Inout_updates_bytes_opt_
#define _Inout_updates_bytes_opt_(n)
#endif
#ifndef _Inout_updates_all_
#define _Inout_updates_all_(n)
#endif
#ifndef _Inout_updates_to_
#define _Inout_updates_to_(n, c)
#endif
#ifndef _Outptr_result_buffer_
#define _Outptr_result_buffer_(n)
#endif
#ifndef _Outptr_result_bytebuffer_
#define _Outptr_result_bytebuffer_(n)
#endif
#ifndef _Field_size_
#define _Field_size_(n)
#endif
#ifndef _Field_size_opt_
#define _Field_size_opt_(n)
#endif
#ifndef _Field_size_bytes_
#define _Field_size_bytes_(n)
#endif
#ifndef _Field_size_bytes_opt_
#define _Field_size_bytes_opt_(n)
#endif
#ifndef _Field_size_part_
#define _Field_size_part_(n, c)
#endif
#ifndef _Field_size_bytes_part_
#define _Field_size_bytes_part_(n, c)
#endif
#ifndef _Field_range_
#define _Field_range_(lo, hi)
#endif
#ifndef _Struct_size_bytes_
#define _Struct_size_bytes_(n)
#endif
#ifndef _Deref_out_range_
#define _Deref_out_range_(lo, hi)
#endif
#ifndef _Deref_in_range_
#define _Deref_in_range_(lo, hi)
#endif
#ifndef _Ret_range_
#define _Ret_range_(lo, hi)
#endif
#ifndef _Ret_writes_
#define _Ret_writes_(n)
#endif
#ifndef _Ret_writes_bytes_
#define _Ret_writes_bytes_(n)
#endif
#ifndef _Ret_writes_maybenull_
#define _Ret_writes_maybenull_(n)
#endif
#ifndef _Ret_writes_bytes_maybenull_
#define _Ret_writes_bytes_maybenull_(n)
#endif
#ifndef _Pre_satisfies_
#define _Pre_satisfies_(e)
#endif
#ifndef _Post_satisfies_
#define _Post_satisfies_(e)
#endif
#ifndef _Post_equal_to_
#define _Post_equal_to_(e)
#endif
#ifndef _Satisfies_
#define _Satisfies_(e)
#endif
#ifndef _When_
#define _When_(e, a)
#endif
#ifndef _At_
#define _At_(t, a)
#endif
#ifndef _At_buffer_
#define _At_buffer_(t, i, n, a)
#endif
#ifndef _Group_
#define _Group_(a)
#endif
#ifndef _Success_
#define _Success_(e)
#endif
#ifndef _Return_type_success_
#define _Return_type_success_(e)
#endif
#ifndef _On_failure_
#define _On_failure_(a)
#endif
#ifndef _Always_
#define _Always_(a)
#endif
#ifndef _Guarded_by_
#define _Guarded_by_(l)
#endif
#ifndef _Write_guarded_by_
#define _Write_guarded_by_(l)
#endif
#ifndef _Interlocked_
#define _Interlocked_
#endif
#ifndef _Function_class_
#define _Function_class_(c)
#endif
#ifndef _Analysis_assume_
#define _Analysis_assume_(e)
#endif
#ifndef _Analysis_mode_
#define _Analysis_mode_(m)
#endif
#ifndef _IRQL_requires_
#define _IRQL_requires_(l)
#endif
#ifndef _IRQL_requires_max_
#define _IRQL_requires_max_(l)
#endif
#ifndef _IRQL_requires_min_
#define _IRQL_requires_min_(l)
#endif
#ifndef _IRQL_raises_
#define _IRQL_raises_(l)
#endif
#ifndef _IRQL_limited_to_
#define _IRQL_limited_to_(l)
#endif
#ifndef _IRQL_always_function_max_
#define _IRQL_always_function_max_(l)
#endif
#ifndef _IRQL_always_function_min_
#define _IRQL_always_function_min_(l)
#endif
#ifndef _IRQL_saves_global_
#define _IRQL_saves_global_(k, p)
#endif
#ifndef _IRQL_restores_global_
#define _IRQL_restores_global_(k, p)
#endif
#ifndef _Acquires_lock_
#define _Acquires_lock_(l)
#endif
#ifndef _Acquires_exclusive_lock_
#define _Acquires_exclusive_lock_(l)
#endif
#ifndef _Acquires_shared_lock_
#define _Acquires_shared_lock_(l)
#endif
#ifndef _Acquires_nonreentrant_lock_
#define _Acquires_nonreentrant_lock_(l)
#endif
#ifndef _Releases_lock_
#define _Releases_lock_(l)
#endif
#ifndef _Releases_exclusive_lock_
#define _Releases_exclusive_lock_(l)
#endif
#ifndef _Releases_shared_lock_
#define _Releases_shared_lock_(l)
#endif
#ifndef _Releases_nonreentrant_lock_
#define _Releases_nonreentrant_lock_(l)
#endif
#ifndef _Requires_lock_held_
#define _Requires_lock_held_(l)
#endif
#ifndef _Requires_exclusive_lock_held_
#define _Requires_exclusive_lock_held_(l)
#endif
#ifndef _Requires_shared_lock_held_
#define _Requires_shared_lock_held_(l)
#endif
#ifndef _Requires_lock_not_held_
#define _Requires_lock_not_held_(l)
#endif
#ifndef _Post_same_lock_
#define _Post_same_lock_(a, b)
#endif
#ifndef _Has_lock_kind_
#define _Has_lock_kind_(k)
#endif
#ifndef _Has_lock_level_
#define _Has_lock_level_(l)
#endif
#ifndef _Create_lock_level_
#define _Create_lock_level_(l)
#endif
#ifndef _Lock_level_order_
#define _Lock_level_order_(a, b)
#endif
#ifndef _Global_lock_
#define _Global_lock_(l)
#endif
#ifndef _Kernel_float_saved_
#define _Kernel_float_saved_
#endif
#ifndef _Kernel_float_restored_
#define _Kernel_float_restored_
#endif
#ifndef _Kernel_float_used_
#define _Kernel_float_used_
#endif
#ifndef _Kernel_requires_resource_held_
#define _Kernel_requires_resource_held_(k)
#endif
#ifndef _Kernel_requires_resource_not_held_
#define _Kernel_requires_resource_not_held_(k)
#endif
#ifndef _Kernel_acquires_resource_
#define _Kernel_acquires_resource_(k)
#endif
#ifndef _Kernel_releases_resource_
#define _Kernel_releases_resource_(k)
#endif
#ifndef _Kernel_IoGetDmaAdapter_
#define _Kernel_IoGetDmaAdapter_
#endif
#ifndef _Dispatch_type_
#define _Dispatch_type_(t)
#endif
#ifndef _Analysis_assume_nullterminated_
#define _Analysis_assume_nullterminated_(a)
#endif
#ifndef _COM_Outptr_opt_
#define _COM_Outptr_opt_
#endif
#ifndef _COM_Outptr_opt_result_maybenull_
#define _COM_Outptr_opt_result_maybenull_
#endif
#ifndef _COM_Outptr_result_maybenull_
#define _COM_Outptr_result_maybenull_
#endif
#ifndef _Called_from_function_class_
#define _Called_from_function_class_(a)
#endif
#ifndef _Deref_inout_range_
#define _Deref_inout_range_(a, b)
#endif
#ifndef _Deref_opt_out_
#define _Deref_opt_out_
#endif
#ifndef _Deref_opt_out_opt_
#define _Deref_opt_out_opt_
#endif
#ifndef _Deref_out_
#define _Deref_out_
#endif
#ifndef _Deref_out_opt_
#define _Deref_out_opt_
#endif
#ifndef _Deref_ret_range_
#define _Deref_ret_range_(a, b)
#endif
#ifndef _Field_size_bytes_full_
#define _Field_size_bytes_full_(a)
#endif
#ifndef _Field_size_bytes_full_opt_
#define _Field_size_bytes_full_opt_(a)
#endif
#ifndef _Field_size_bytes_part_opt_
#define _Field_size_bytes_part_opt_(a, b)
#endif
#ifndef _Field_size_full_
#define _Field_size_full_(a)
#endif
#ifndef _Field_size_full_opt_
#define _Field_size_full_opt_(a)
#endif
#ifndef _Field_size_part_opt_
#define _Field_size_part_opt_(a, b)
#endif
#ifndef _Format_string_impl_
#define _Format_string_impl_(a, b)
#endif
#ifndef _In_bytecount_
#define _In_bytecount_(a)
#endif
#ifndef _In_bytecount_c_
#define _In_bytecount_c_(a)
#endif
#ifndef _In_bytecount_x_
#define _In_bytecount_x_(a)
#endif
#ifndef _In_count_
#define _In_count_(a)
#endif
#ifndef _In_count_c_
#define _In_count_c_(a)
#endif
#ifndef _In_count_x_
#define _In_count_x_(a)
#endif
#ifndef _In_opt_bytecount_
#define _In_opt_bytecount_(a)
#endif
#ifndef _In_opt_bytecount_c_
#define _In_opt_bytecount_c_(a)
#endif
#ifndef _In_opt_bytecount_x_
#define _In_opt_bytecount_x_(a)
#endif
#ifndef _In_opt_count_
#define _In_opt_count_(a)
#endif
#ifndef _In_opt_count_c_
#define _In_opt_count_c_(a)
#endif
#ifndef _In_opt_count_x_
#define _In_opt_count_x_(a)
#endif
#ifndef _In_opt_ptrdiff_count_
#define _In_opt_ptrdiff_count_(a)
#endif
#ifndef _In_opt_z_bytecount_
#define _In_opt_z_bytecount_(a)
#endif
#ifndef _In_opt_z_bytecount_c_
#define _In_opt_z_bytecount_c_(a)
#endif
#ifndef _In_opt_z_count_
#define _In_opt_z_count_(a)
#endif
#ifndef _In_opt_z_count_c_
#define _In_opt_z_count_c_(a)
#endif
#ifndef _In_ptrdiff_count_
#define _In_ptrdiff_count_(a)
#endif
#ifndef _In_reads_opt_z_
#define _In_reads_opt_z_(a)
#endif
#ifndef _In_reads_or_z_
#define _In_reads_or_z_(a)
#endif
#ifndef _In_reads_or_z_opt_
#define _In_reads_or_z_opt_(a)
#endif
#ifndef _In_reads_to_ptr_
#define _In_reads_to_ptr_(a)
#endif
#ifndef _In_reads_to_ptr_opt_
#define _In_reads_to_ptr_opt_(a)
#endif
#ifndef _In_reads_to_ptr_opt_z_
#define _In_reads_to_ptr_opt_z_(a)
#endif
#ifndef _In_reads_to_ptr_z_
#define _In_reads_to_ptr_z_(a)
#endif
#ifndef _In_z_bytecount_
#define _In_z_bytecount_(a)
#endif
#ifndef _In_z_bytecount_c_
#define _In_z_bytecount_c_(a)
#endif
#ifndef _In_z_count_
#define _In_z_count_(a)
#endif
#ifndef _In_z_count_c_
#define _In_z_count_c_(a)
#endif
#ifndef _Inout_bytecap_
#define _Inout_bytecap_(a)
#endif
#ifndef _Inout_bytecap_c_
#define _Inout_bytecap_c_(a)
#endif
#ifndef _Inout_bytecap_x_
#define _Inout_bytecap_x_(a)
#endif
#ifndef _Inout_bytecount_
#define _Inout_bytecount_(a)
#endif
#ifndef _Inout_bytecount_c_
#define _Inout_bytecount_c_(a)
#endif
#ifndef _Inout_bytecount_x_
#define _Inout_bytecount_x_(a)
#endif
#ifndef _Inout_cap_
#define _Inout_cap_(a)
#endif
#ifndef _Inout_cap_c_
#define _Inout_cap_c_(a)
#endif
#ifndef _Inout_cap_x_
#define _Inout_cap_x_(a)
#endif
#ifndef _Inout_count_
#define _Inout_count_(a)
#endif
#ifndef _Inout_count_c_
#define _Inout_count_c_(a)
#endif
#ifndef _Inout_count_x_
#define _Inout_count_x_(a)
#endif
#ifndef _Inout_opt_bytecap_
#define _Inout_opt_bytecap_(a)
#endif
#ifndef _Inout_opt_bytecap_c_
#define _Inout_opt_bytecap_c_(a)
#endif
#ifndef _Inout_opt_bytecap_x_
#define _Inout_opt_bytecap_x_(a)
#endif
#ifndef _Inout_opt_bytecount_
#define _Inout_opt_bytecount_(a)
#endif
#ifndef _Inout_opt_bytecount_c_
#define _Inout_opt_bytecount_c_(a)
#endif
#ifndef _Inout_opt_bytecount_x_
#define _Inout_opt_bytecount_x_(a)
#endif
#ifndef _Inout_opt_cap_
#define _Inout_opt_cap_(a)
#endif
#ifndef _Inout_opt_cap_c_
#define _Inout_opt_cap_c_(a)
#endif
#ifndef _Inout_opt_cap_x_
#define _Inout_opt_cap_x_(a)
#endif
#ifndef _Inout_opt_count_
#define _Inout_opt_count_(a)
#endif
#ifndef _Inout_opt_count_c_
#define _Inout_opt_count_c_(a)
#endif
#ifndef _Inout_opt_count_x_
#define _Inout_opt_count_x_(a)
#endif
#ifndef _Inout_opt_ptrdiff_count_
#define _Inout_opt_ptrdiff_count_(a)
#endif
#ifndef _Inout_opt_z_
#define _Inout_opt_z_
#endif
#ifndef _Inout_opt_z_bytecap_
#define _Inout_opt_z_bytecap_(a)
#endif
#ifndef _Inout_opt_z_bytecap_c_
#define _Inout_opt_z_bytecap_c_(a)
#endif
#ifndef _Inout_opt_z_bytecap_x_
#define _Inout_opt_z_bytecap_x_(a)
#endif
#ifndef _Inout_opt_z_bytecount_
#define _Inout_opt_z_bytecount_(a)
#endif
#ifndef _Inout_opt_z_bytecount_c_
#define _Inout_opt_z_bytecount_c_(a)
#endif
#ifndef _Inout_opt_z_cap_
#define _Inout_opt_z_cap_(a)
#endif
#ifndef _Inout_opt_z_cap_c_
#define _Inout_opt_z_cap_c_(a)
#endif
#ifndef _Inout_opt_z_cap_x_
#define _Inout_opt_z_cap_x_(a)
#endif
#ifndef _Inout_opt_z_count_
#define _Inout_opt_z_count_(a)
#endif
#ifndef _Inout_opt_z_count_c_
#define _Inout_opt_z_count_c_(a)
#endif
#ifndef _Inout_ptrdiff_count_
#define _Inout_ptrdiff_count_(a)
#endif
#ifndef _Inout_updates_all_opt_
#define _Inout_updates_all_opt_(a)
#endif
#ifndef _Inout_updates_bytes_all_
#define _Inout_updates_bytes_all_(a)
#endif
#ifndef _Inout_updates_bytes_all_opt_
#define _Inout_updates_bytes_all_opt_(a)
#endif
#ifndef _Inout_updates_bytes_to_
#define _Inout_updates_bytes_to_(a, b)
#endif
#ifndef _Inout_updates_bytes_to_opt_
#define _Inout_updates_bytes_to_opt_(a, b)
#endif
#ifndef _Inout_updates_opt_z_
#define _Inout_updates_opt_z_(a)
#endif
#ifndef _Inout_updates_to_opt_
#define _Inout_updates_to_opt_(a, b)
#endif
#ifndef _Inout_updates_z_
#define _Inout_updates_z_(a)
#endif
#ifndef _Inout_z_bytecap_
#define _Inout_z_bytecap_(a)
#endif
#ifndef _Inout_z_bytecap_c_
#define _Inout_z_bytecap_c_(a)
#endif
#ifndef _Inout_z_bytecap_x_
#define _Inout_z_bytecap_x_(a)
#endif
#ifndef _Inout_z_bytecount_
#define _Inout_z_bytecount_(a)
#endif
#ifndef _Inout_z_bytecount_c_
#define _Inout_z_bytecount_c_(a)
#endif
#ifndef _Inout_z_cap_
#define _Inout_z_cap_(a)
#endif
#ifndef _Inout_z_cap_c_
#define _Inout_z_cap_c_(a)
#endif
#ifndef _Inout_z_cap_x_
#define _Inout_z_cap_x_(a)
#endif
#ifndef _Inout_z_count_
#define _Inout_z_count_(a)
#endif
#ifndef _Inout_z_count_c_
#define _Inout_z_count_c_(a)
#endif
#ifndef _Maybe_raises_SEH_exception_
#define _Maybe_raises_SEH_exception_
#endif
#ifndef _Out_bytecap_
#define _Out_bytecap_(a)
#endif
#ifndef _Out_bytecap_c_
#define _Out_bytecap_c_(a)
#endif
#ifndef _Out_bytecap_post_bytecount_
#define _Out_bytecap_post_bytecount_(a, b)
#endif
#ifndef _Out_bytecap_x_
#define _Out_bytecap_x_(a)
#endif
#ifndef _Out_bytecapcount_
#define _Out_bytecapcount_(a)
#endif
#ifndef _Out_bytecapcount_x_
#define _Out_bytecapcount_x_(a)
#endif
#ifndef _Out_cap_
#define _Out_cap_(a)
#endif
#ifndef _Out_cap_c_
#define _Out_cap_c_(a)
#endif
#ifndef _Out_cap_m_
#define _Out_cap_m_(a, b)
#endif
#ifndef _Out_cap_post_count_
#define _Out_cap_post_count_(a, b)
#endif
#ifndef _Out_cap_x_
#define _Out_cap_x_(a)
#endif
#ifndef _Out_capcount_
#define _Out_capcount_(a)
#endif
#ifndef _Out_capcount_x_
#define _Out_capcount_x_(a)
#endif
#ifndef _Out_opt_bytecap_
#define _Out_opt_bytecap_(a)
#endif
#ifndef _Out_opt_bytecap_c_
#define _Out_opt_bytecap_c_(a)
#endif
#ifndef _Out_opt_bytecap_post_bytecount_
#define _Out_opt_bytecap_post_bytecount_(a, b)
#endif
#ifndef _Out_opt_bytecap_x_
#define _Out_opt_bytecap_x_(a)
#endif
#ifndef _Out_opt_bytecapcount_
#define _Out_opt_bytecapcount_(a)
#endif
#ifndef _Out_opt_bytecapcount_x_
#define _Out_opt_bytecapcount_x_(a)
#endif
#ifndef _Out_opt_cap_
#define _Out_opt_cap_(a)
#endif
#ifndef _Out_opt_cap_c_
#define _Out_opt_cap_c_(a)
#endif
#ifndef _Out_opt_cap_m_
#define _Out_opt_cap_m_(a, b)
#endif
#ifndef _Out_opt_cap_post_count_
#define _Out_opt_cap_post_count_(a, b)
#endif
#ifndef _Out_opt_cap_x_
#define _Out_opt_cap_x_(a)
#endif
#ifndef _Out_opt_capcount_
#define _Out_opt_capcount_(a)
#endif
#ifndef _Out_opt_capcount_x_
#define _Out_opt_capcount_x_(a)
#endif
#ifndef _Out_opt_ptrdiff_cap_
#define _Out_opt_ptrdiff_cap_(a)
#endif
#ifndef _Out_opt_z_bytecap_
#define _Out_opt_z_bytecap_(a)
#endif
#ifndef _Out_opt_z_bytecap_c_
#define _Out_opt_z_bytecap_c_(a)
#endif
#ifndef _Out_opt_z_bytecap_post_bytecount_
#define _Out_opt_z_bytecap_post_bytecount_(a, b)
#endif
#ifndef _Out_opt_z_bytecap_x_
#define _Out_opt_z_bytecap_x_(a)
#endif
#ifndef _Out_opt_z_bytecapcount_
#define _Out_opt_z_bytecapcount_(a)
#endif
#ifndef _Out_opt_z_cap_
#define _Out_opt_z_cap_(a)
#endif
#ifndef _Out_opt_z_cap_c_
#define _Out_opt_z_cap_c_(a)
#endif
#ifndef _Out_opt_z_cap_m_
#define _Out_opt_z_cap_m_(a, b)
#endif
#ifndef _Out_opt_z_cap_post_count_
#define _Out_opt_z_cap_post_count_(a, b)
#endif
#ifndef _Out_opt_z_cap_x_
#define _Out_opt_z_cap_x_(a)
#endif
#ifndef _Out_opt_z_capcount_
#define _Out_opt_z_capcount_(a)
#endif
#ifndef _Out_ptrdiff_cap_
#define _Out_ptrdiff_cap_(a)
#endif
#ifndef _Out_writes_all_opt_
#define _Out_writes_all_opt_(a)
#endif
#ifndef _Out_writes_bytes_all_opt_
#define _Out_writes_bytes_all_opt_(a)
#endif
#ifndef _Out_writes_opt_z_
#define _Out_writes_opt_z_(a)
#endif
#ifndef _Out_writes_to_ptr_
#define _Out_writes_to_ptr_(a)
#endif
#ifndef _Out_writes_to_ptr_opt_
#define _Out_writes_to_ptr_opt_(a)
#endif
#ifndef _Out_writes_to_ptr_opt_z_
#define _Out_writes_to_ptr_opt_z_(a)
#endif
#ifndef _Out_writes_to_ptr_z_
#define _Out_writes_to_ptr_z_(a)
#endif
#ifndef _Out_z_bytecap_
#define _Out_z_bytecap_(a)
#endif
#ifndef _Out_z_bytecap_c_
#define _Out_z_bytecap_c_(a)
#endif
#ifndef _Out_z_bytecap_post_bytecount_
#define _Out_z_bytecap_post_bytecount_(a, b)
#endif
#ifndef _Out_z_bytecap_x_
#define _Out_z_bytecap_x_(a)
#endif
#ifndef _Out_z_bytecapcount_
#define _Out_z_bytecapcount_(a)
#endif
#ifndef _Out_z_cap_
#define _Out_z_cap_(a)
#endif
#ifndef _Out_z_cap_c_
#define _Out_z_cap_c_(a)
#endif
#ifndef _Out_z_cap_m_
#define _Out_z_cap_m_(a, b)
#endif
#ifndef _Out_z_cap_post_count_
#define _Out_z_cap_post_count_(a, b)
#endif
#ifndef _Out_z_cap_x_
#define _Out_z_cap_x_(a)
#endif
#ifndef _Out_z_capcount_
#define _Out_z_capcount_(a)
#endif
#ifndef _Outptr_opt_result_buffer_
#define _Outptr_opt_result_buffer_(a)
#endif
#ifndef _Outptr_opt_result_buffer_all_
#define _Outptr_opt_result_buffer_all_(a)
#endif
#ifndef _Outptr_opt_result_buffer_all_maybenull_
#define _Outptr_opt_result_buffer_all_maybenull_(a)
#endif
#ifndef _Outptr_opt_result_buffer_maybenull_
#define _Outptr_opt_result_buffer_maybenull_(a)
#endif
#ifndef _Outptr_opt_result_buffer_to_
#define _Outptr_opt_result_buffer_to_(a, b)
#endif
#ifndef _Outptr_opt_result_buffer_to_maybenull_
#define _Outptr_opt_result_buffer_to_maybenull_(a, b)
#endif
#ifndef _Outptr_opt_result_bytebuffer_
#define _Outptr_opt_result_bytebuffer_(a)
#endif
#ifndef _Outptr_opt_result_bytebuffer_all_
#define _Outptr_opt_result_bytebuffer_all_(a)
#endif
#ifndef _Outptr_opt_result_bytebuffer_all_maybenull_
#define _Outptr_opt_result_bytebuffer_all_maybenull_(a)
#endif
#ifndef _Outptr_opt_result_bytebuffer_maybenull_
#define _Outptr_opt_result_bytebuffer_maybenull_(a)
#endif
#ifndef _Outptr_opt_result_bytebuffer_to_
#define _Outptr_opt_result_bytebuffer_to_(a, b)
#endif
#ifndef _Outptr_opt_result_bytebuffer_to_maybenull_
#define _Outptr_opt_result_bytebuffer_to_maybenull_(a, b)
#endif
#ifndef _Outptr_opt_result_maybenull_z_
#define _Outptr_opt_result_maybenull_z_
#endif
#ifndef _Outptr_opt_result_nullonfailure_
#define _Outptr_opt_result_nullonfailure_
#endif
#ifndef _Outptr_opt_result_z_
#define _Outptr_opt_result_z_
#endif
#ifndef _Outptr_result_buffer_all_
#define _Outptr_result_buffer_all_(a)
#endif
#ifndef _Outptr_result_buffer_all_maybenull_
#define _Outptr_result_buffer_all_maybenull_(a)
#endif
#ifndef _Outptr_result_buffer_maybenull_
#define _Outptr_result_buffer_maybenull_(a)
#endif
#ifndef _Outptr_result_buffer_to_
#define _Outptr_result_buffer_to_(a, b)
#endif
#ifndef _Outptr_result_buffer_to_maybenull_
#define _Outptr_result_buffer_to_maybenull_(a, b)
#endif
#ifndef _Outptr_result_bytebuffer_all_
#define _Outptr_result_bytebuffer_all_(a)
#endif
#ifndef _Outptr_result_bytebuffer_all_maybenull_
#define _Outptr_result_bytebuffer_all_maybenull_(a)
#endif
#ifndef _Outptr_result_bytebuffer_maybenull_
#define _Outptr_result_bytebuffer_maybenull_(a)
#endif
#ifndef _Outptr_result_bytebuffer_to_
#define _Outptr_result_bytebuffer_to_(a, b)
#endif
#ifndef _Outptr_result_bytebuffer_to_maybenull_
#define _Outptr_result_bytebuffer_to_maybenull_(a, b)
#endif
#ifndef _Outptr_result_maybenull_z_
#define _Outptr_result_maybenull_z_
#endif
#ifndef _Outptr_result_nullonfailure_
#define _Outptr_result_nullonfailure_
#endif
#ifndef _Outptr_result_z_
#define _Outptr_result_z_
#endif
#ifndef _Outref_
#define _Outref_
#endif
#ifndef _Outref_result_buffer_
#define _Outref_result_buffer_(a)
#endif
#ifndef _Outref_result_buffer_all_
#define _Outref_result_buffer_all_(a)
#endif
#ifndef _Outref_result_buffer_all_maybenull_
#define _Outref_result_buffer_all_maybenull_(a)
#endif
#ifndef _Outref_result_buffer_maybenull_
#define _Outref_result_buffer_maybenull_(a)
#endif
#ifndef _Outref_result_buffer_to_
#define _Outref_result_buffer_to_(a, b)
#endif
#ifndef _Outref_result_buffer_to_maybenull_
#define _Outref_result_buffer_to_maybenull_(a, b)
#endif
#ifndef _Outref_result_bytebuffer_
#define _Outref_result_bytebuffer_(a)
#endif
#ifndef _Outref_result_bytebuffer_all_
#define _Outref_result_bytebuffer_all_(a)
#endif
#ifndef _Outref_result_bytebuffer_all_maybenull_
#define _Outref_result_bytebuffer_all_maybenull_(a)
#endif
#ifndef _Outref_result_bytebuffer_maybenull_
#define _Outref_result_bytebuffer_maybenull_(a)
#endif
#ifndef _Outref_result_bytebuffer_to_
#define _Outref_result_bytebuffer_to_(a, b)
#endif
#ifndef _Outref_result_bytebuffer_to_maybenull_
#define _Outref_result_bytebuffer_to_maybenull_(a, b)
#endif
#ifndef _Outref_result_maybenull_
#define _Outref_result_maybenull_
#endif
#ifndef _Outref_result_nullonfailure_
#define _Outref_result_nullonfailure_
#endif
#ifndef _Post_equals_last_error_
#define _Post_equals_last_error_
#endif
#ifndef _Post_readable_byte_size_
#define _Post_readable_byte_size_(a)
#endif
#ifndef _Post_readable_size_
#define _Post_readable_size_(a)
#endif
#ifndef _Post_writable_byte_size_
#define _Post_writable_byte_size_(a)
#endif
#ifndef _Post_writable_size_
#define _Post_writable_size_(a)
#endif
#ifndef _Pre_equal_to_
#define _Pre_equal_to_(a)
#endif
#ifndef _Pre_readable_byte_size_
#define _Pre_readable_byte_size_(a)
#endif
#ifndef _Pre_readable_size_
#define _Pre_readable_size_(a)
#endif
#ifndef _Pre_writable_byte_size_
#define _Pre_writable_byte_size_(a)
#endif
#ifndef _Pre_writable_size_
#define _Pre_writable_size_(a)
#endif
#ifndef _Printf_format_string_params_
#define _Printf_format_string_params_(a)
#endif
#ifndef _Raises_SEH_exception_
#define _Raises_SEH_exception_
#endif
#ifndef _Readable_bytes_
#define _Readable_bytes_(a)
#endif
#ifndef _Readable_elements_
#define _Readable_elements_(a)
#endif
#ifndef _Result_nullonfailure_
#define _Result_nullonfailure_
#endif
#ifndef _Result_zeroonfailure_
#define _Result_zeroonfailure_
#endif
#ifndef _Ret_maybenull_z_
#define _Ret_maybenull_z_
#endif
#ifndef _Ret_null_
#define _Ret_null_
#endif
#ifndef _Ret_valid_
#define _Ret_valid_
#endif
#ifndef _Ret_writes_bytes_to_
#define _Ret_writes_bytes_to_(a, b)
#endif
#ifndef _Ret_writes_bytes_to_maybenull_
#define _Ret_writes_bytes_to_maybenull_(a, b)
#endif
#ifndef _Ret_writes_maybenull_z_
#define _Ret_writes_maybenull_z_(a)
#endif
#ifndef _Ret_writes_to_
#define _Ret_writes_to_(a, b)
#endif
#ifndef _Ret_writes_to_maybenull_
#define _Ret_writes_to_maybenull_(a, b)
#endif
#ifndef _Ret_writes_z_
#define _Ret_writes_z_(a)
#endif
#ifndef _Scanf_format_string_
#define _Scanf_format_string_
#endif
#ifndef _Scanf_format_string_params_
#define _Scanf_format_string_params_(a)
#endif
#ifndef _Scanf_s_format_string_
#define _Scanf_s_format_string_
#endif
#ifndef _Scanf_s_format_string_params_
#define _Scanf_s_format_string_params_(a)
#endif
#ifndef _Unchanged_
#define _Unchanged_(a)
#endif
#ifndef _Writable_bytes_
#define _Writable_bytes_(a)
#endif
#ifndef _Writable_elements_
#define _Writable_elements_(a)
#endif
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif
#ifndef CONST
#define CONST const
#endif

#endif

#if defined(INTERLOCK_OLD_ANNOTATIONS) && !defined(INTERLOCK_OLD_ANNOTATIONS_H)
#define INTERLOCK_OLD_ANNOTATIONS_H

#if !defined(__cplusplus) || defined(INTERLOCK_SAL1)
#define __in
#define __out
#define __inout
#define __callback
#if !__has_include(<bits/alltypes.h>) /* musl, which has members of this name */
#define __reserved
#endif
#define __valid
#define __refparam
#define __success(Expression)
#define __range(Low, High)
#endif

#define __in_opt
#define __in_z
#define __in_z_opt
#define __in_nz
#define __in_nz_opt
#define __in_ecount(Size)
#define __in_ecount_opt(Size)
#define __in_ecount_z(Size)
#define __in_ecount_z_opt(Size)
#define __in_ecount_nz(Size)
#define __in_ecount_nz_opt(Size)
#define __in_ecount_full(Size)
#define __in_ecount_full_opt(Size)
#define __in_ecount_part(Size, Length)
#define __in_ecount_part_opt(Size, Length)
#define __in_bcount(Size)
#define __in_bcount_opt(Size)
#define __in_bcount_z(Size)
#define __in_bcount_z_opt(Size)
#define __in_bcount_nz(Size)
#define __in_bcount_nz_opt(Size)
#define __in_bcount_full(Size)
#define __in_bcount_full_opt(Size)
#define __in_bcount_part(Size, Length)
#define __in_bcount_part_opt(Size, Length)
#define __in_xcount(Size)
#define __in_xcount_opt(Size)
#define __in_xcount_z(Size)
#define __in_xcount_z_opt(Size)
#define __in_xcount_nz(Size)
#define __in_xcount_nz_opt(Size)
#define __in_xcount_full(Size)
#define __in_xcount_full_opt(Size)
#define __in_xcount_part(Size, Length)
#define __in_xcount_part_opt(Size, Length)
#define __deref_in
#define __deref_in_opt
#define __deref_in_z
#define __deref_in_z_opt
#define __deref_in_nz
#define __deref_in_nz_opt
#define __deref_in_ecount(Size)
#define __deref_in_ecount_opt(Size)
#define __deref_in_ecount_z(Size)
#define __deref_in_ecount_z_opt(Size)
#define __deref_in_ecount_nz(Size)
#define __deref_in_ecount_nz_opt(Size)
#define __deref_in_ecount_full(Size)
#define __deref_in_ecount_full_opt(Size)
#define __deref_in_ecount_part(Size, Length)
#define __deref_in_ecount_part_opt(Size, Length)
#define __deref_in_bcount(Size)
#define __deref_in_bcount_opt(Size)
#define __deref_in_bcount_z(Size)
#define __deref_in_bcount_z_opt(Size)
#define __deref_in_bcount_nz(Size)
#define __deref_in_bcount_nz_opt(Size)
#define __deref_in_bcount_full(Size)
#define __deref_in_bcount_full_opt(Size)
#define __deref_in_bcount_part(Size, Length)
#define __deref_in_bcount_part_opt(Size, Length)
#define __deref_in_xcount(Size)
#define __deref_in_xcount_opt(Size)
#define __deref_in_xcount_z(Size)
#define __deref_in_xcount_z_opt(Size)
#define __deref_in_xcount_nz(Size)
#define __deref_in_xcount_nz_opt(Size)
#define __deref_in_xcount_full(Size)
#define __deref_in_xcount_full_opt(Size)
#define __deref_in_xcount_part(Size, Length)
#define __deref_in_xcount_part_opt(Size, Length)
#define __deref_opt_in
#define __deref_opt_in_opt
#define __deref_opt_in_z
#define __deref_opt_in_z_opt
#define __deref_opt_in_nz
#define __deref_opt_in_nz_opt
#define __deref_opt_in_ecount(Size)
#define __deref_opt_in_ecount_opt(Size)
#define __deref_opt_in_ecount_z(Size)
#define __deref_opt_in_ecount_z_opt(Size)
#define __deref_opt_in_ecount_nz(Size)
#define __deref_opt_in_ecount_nz_opt(Size)
#define __deref_opt_in_ecount_full(Size)
#define __deref_opt_in_ecount_full_opt(Size)
#define __deref_opt_in_ecount_part(Size, Length)
#define __deref_opt_in_ecount_part_opt(Size, Length)
#define __deref_opt_in_bcount(Size)
#define __deref_opt_in_bcount_opt(Size)
#define __deref_opt_in_bcount_z(Size)
#define __deref_opt_in_bcount_z_opt(Size)
#define __deref_opt_in_bcount_nz(Size)
#define __deref_opt_in_bcount_nz_opt(Size)
#define __deref_opt_in_bcount_full(Size)
#define __deref_opt_in_bcount_full_opt(Size)
#define __deref_opt_in_bcount_part(Size, Length)
#define __deref_opt_in_bcount_part_opt(Size, Length)
#define __deref_opt_in_xcount(Size)
#define __deref_opt_in_xcount_opt(Size)
#define __deref_opt_in_xcount_z(Size)
#define __deref_opt_in_xcount_z_opt(Size)
#define __deref_opt_in_xcount_nz(Size)
#define __deref_opt_in_xcount_nz_opt(Size)
#define __deref_opt_in_xcount_full(Size)
#define __deref_opt_in_xcount_full_opt(Size)
#define __deref_opt_in_xcount_part(Size, Length)
#define __deref_opt_in_xcount_part_opt(Size, Length)
#define __out_opt
#define __out_z
#define __out_z_opt
#define __out_nz
#define __out_nz_opt
#define __out_ecount(Size)
#define __out_ecount_opt(Size)
#define __out_ecount_z(Size)
#define __out_ecount_z_opt(Size)
#define __out_ecount_nz(Size)
#define __out_ecount_nz_opt(Size)
#define __out_ecount_full(Size)
#define __out_ecount_full_opt(Size)
#define __out_ecount_part(Size, Length)
#define __out_ecount_part_opt(Size, Length)
#define __out_bcount(Size)
#define __out_bcount_opt(Size)
#define __out_bcount_z(Size)
#define __out_bcount_z_opt(Size)
#define __out_bcount_nz(Size)
#define __out_bcount_nz_opt(Size)
#define __out_bcount_full(Size)
#define __out_bcount_full_opt(Size)
#define __out_bcount_part(Size, Length)
#define __out_bcount_part_opt(Size, Length)
#define __out_xcount(Size)
#define __out_xcount_opt(Size)
#define __out_xcount_z(Size)
#define __out_xcount_z_opt(Size)
#define __out_xcount_nz(Size)
#define __out_xcount_nz_opt(Size)
#define __out_xcount_full(Size)
#define __out_xcount_full_opt(Size)
#define __out_xcount_part(Size, Length)
#define __out_xcount_part_opt(Size, Length)
#define __deref_out
#define __deref_out_opt
#define __deref_out_z
#define __deref_out_z_opt
#define __deref_out_nz
#define __deref_out_nz_opt
#define __deref_out_ecount(Size)
#define __deref_out_ecount_opt(Size)
#define __deref_out_ecount_z(Size)
#define __deref_out_ecount_z_opt(Size)
#define __deref_out_ecount_nz(Size)
#define __deref_out_ecount_nz_opt(Size)
#define __deref_out_ecount_full(Size)
#define __deref_out_ecount_full_opt(Size)
#define __deref_out_ecount_part(Size, Length)
#define __deref_out_ecount_part_opt(Size, Length)
#define __deref_out_bcount(Size)
#define __deref_out_bcount_opt(Size)
#define __deref_out_bcount_z(Size)
#define __deref_out_bcount_z_opt(Size)
#define __deref_out_bcount_nz(Size)
#define __deref_out_bcount_nz_opt(Size)
#define __deref_out_bcount_full(Size)
#define __deref_out_bcount_full_opt(Size)
#define __deref_out_bcount_part(Size, Length)
#define __deref_out_bcount_part_opt(Size, Length)
#define __deref_out_xcount(Size)
#define __deref_out_xcount_opt(Size)
#define __deref_out_xcount_z(Size)
#define __deref_out_xcount_z_opt(Size)
#define __deref_out_xcount_nz(Size)
#define __deref_out_xcount_nz_opt(Size)
#define __deref_out_xcount_full(Size)
#define __deref_out_xcount_full_opt(Size)
#define __deref_out_xcount_part(Size, Length)
#define __deref_out_xcount_part_opt(Size, Length)
#define __deref_opt_out
#define __deref_opt_out_opt
#define __deref_opt_out_z
#define __deref_opt_out_z_opt
#define __deref_opt_out_nz
#define __deref_opt_out_nz_opt
#define __deref_opt_out_ecount(Size)
#define __deref_opt_out_ecount_opt(Size)
#define __deref_opt_out_ecount_z(Size)
#define __deref_opt_out_ecount_z_opt(Size)
#define __deref_opt_out_ecount_nz(Size)
#define __deref_opt_out_ecount_nz_opt(Size)
#define __deref_opt_out_ecount_full(Size)
#define __deref_opt_out_ecount_full_opt(Size)
#define __deref_opt_out_ecount_part(Size, Length)
#define __deref_opt_out_ecount_part_opt(Size, Length)
#define __deref_opt_out_bcount(Size)
#define __deref_opt_out_bcount_opt(Size)
#define __deref_opt_out_bcount_z(Size)
#define __deref_opt_out_bcount_z_opt(Size)
#define __deref_opt_out_bcount_nz(Size)
#define __deref_opt_out_bcount_nz_opt(Size)
#define __deref_opt_out_bcount_full(Size)
#define __deref_opt_out_bcount_full_opt(Size)
#define __deref_opt_out_bcount_part(Size, Length)
#define __deref_opt_out_bcount_part_opt(Size, Length)
#define __deref_opt_out_xcount(Size)
#define __deref_opt_out_xcount_opt(Size)
#define __deref_opt_out_xcount_z(Size)
#define __deref_opt_out_xcount_z_opt(Size)
#define __deref_opt_out_xcount_nz(Size)
#define __deref_opt_out_xcount_nz_opt(Size)
#define __deref_opt_out_xcount_full(Size)
#define __deref_opt_out_xcount_full_opt(Size)
#define __deref_opt_out_xcount_part(Size, Length)
#define __deref_opt_out_xcount_part_opt(Size, Length)
#define __inout_opt
#define __inout_z
#define __inout_z_opt
#define __inout_nz
#define __inout_nz_opt
#define __inout_ecount(Size)
#define __inout_ecount_opt(Size)
#define __inout_ecount_z(Size)
#define __inout_ecount_z_opt(Size)
#define __inout_ecount_nz(Size)
#define __inout_ecount_nz_opt(Size)
#define __inout_ecount_full(Size)
#define __inout_ecount_full_opt(Size)
#define __inout_ecount_part(Size, Length)
#define __inout_ecount_part_opt(Size, Length)
#define __inout_bcount(Size)
#define __inout_bcount_opt(Size)
#define __inout_bcount_z(Size)
#define __inout_bcount_z_opt(Size)
#define __inout_bcount_nz(Size)
#define __inout_bcount_nz_opt(Size)
#define __inout_bcount_full(Size)
#define __inout_bcount_full_opt(Size)
#define __inout_bcount_part(Size, Length)
#define __inout_bcount_part_opt(Size, Length)
#define __inout_xcount(Size)
#define __inout_xcount_opt(Size)
#define __inout_xcount_z(Size)
#define __inout_xcount_z_opt(Size)
#define __inout_xcount_nz(Size)
#define __inout_xcount_nz_opt(Size)
#define __inout_xcount_full(Size)
#define __inout_xcount_full_opt(Size)
#define __inout_xcount_part(Size, Length)
#define __inout_xcount_part_opt(Size, Length)
#define __deref_inout
#define __deref_inout_opt
#define __deref_inout_z
#define __deref_inout_z_opt
#define __deref_inout_nz
#define __deref_inout_nz_opt
#define __deref_inout_ecount(Size)
#define __deref_inout_ecount_opt(Size)
#define __deref_inout_ecount_z(Size)
#define __deref_inout_ecount_z_opt(Size)
#define __deref_inout_ecount_nz(Size)
#define __deref_inout_ecount_nz_opt(Size)
#define __deref_inout_ecount_full(Size)
#define __deref_inout_ecount_full_opt(Size)
#define __deref_inout_ecount_part(Size, Length)
#define __deref_inout_ecount_part_opt(Size, Length)
#define __deref_inout_bcount(Size)
#define __deref_inout_bcount_opt(Size)
#define __deref_inout_bcount_z(Size)
#define __deref_inout_bcount_z_opt(Size)
#define __deref_inout_bcount_nz(Size)
#define __deref_inout_bcount_nz_opt(Size)
#define __deref_inout_bcount_full(Size)
#define __deref_inout_bcount_full_opt(Size)
#define __deref_inout_bcount_part(Size, Length)
#define __deref_inout_bcount_part_opt(Size, Length)
#define __deref_inout_xcount(Size)
#define __deref_inout_xcount_opt(Size)
#define __deref_inout_xcount_z(Size)
#define __deref_inout_xcount_z_opt(Size)
#define __deref_inout_xcount_nz(Size)
#define __deref_inout_xcount_nz_opt(Size)
#define __deref_inout_xcount_full(Size)
#define __deref_inout_xcount_full_opt(Size)
#define __deref_inout_xcount_part(Size, Length)
#define __deref_inout_xcount_part_opt(Size, Length)
#define __deref_opt_inout
#define __deref_opt_inout_opt
#define __deref_opt_inout_z
#define __deref_opt_inout_z_opt
#define __deref_opt_inout_nz
#define __deref_opt_inout_nz_opt
#define __deref_opt_inout_ecount(Size)
#define __deref_opt_inout_ecount_opt(Size)
#define __deref_opt_inout_ecount_z(Size)
#define __deref_opt_inout_ecount_z_opt(Size)
#define __deref_opt_inout_ecount_nz(Size)
#define __deref_opt_inout_ecount_nz_opt(Size)
#define __deref_opt_inout_ecount_full(Size)
#define __deref_opt_inout_ecount_full_opt(Size)
#define __deref_opt_inout_ecount_part(Size, Length)
#define __deref_opt_inout_ecount_part_opt(Size, Length)
#define __deref_opt_inout_bcount(Size)
#define __deref_opt_inout_bcount_opt(Size)
#define __deref_opt_inout_bcount_z(Size)
#define __deref_opt_inout_bcount_z_opt(Size)
#define __deref_opt_inout_bcount_nz(Size)
#define __deref_opt_inout_bcount_nz_opt(Size)
#define __deref_opt_inout_bcount_full(Size)
#define __deref_opt_inout_bcount_full_opt(Size)
#define __deref_opt_inout_bcount_part(Size, Length)
#define __deref_opt_inout_bcount_part_opt(Size, Length)
#define __deref_opt_inout_xcount(Size)
#define __deref_opt_inout_xcount_opt(Size)
#define __deref_opt_inout_xcount_z(Size)
#define __deref_opt_inout_xcount_z_opt(Size)
#define __deref_opt_inout_xcount_nz(Size)
#define __deref_opt_inout_xcount_nz_opt(Size)
#define __deref_opt_inout_xcount_full(Size)
#define __deref_opt_inout_xcount_full_opt(Size)
#define __deref_opt_inout_xcount_part(Size, Length)
#define __deref_opt_inout_xcount_part_opt(Size, Length)
#define __ecount(Size)
#define __deref_ecount(Size)
#define __deref_opt_ecount(Size)
#define __ecount_opt(Size)
#define __deref_ecount_opt(Size)
#define __deref_opt_ecount_opt(Size)
#define __bcount(Size)
#define __deref_bcount(Size)
#define __deref_opt_bcount(Size)
#define __bcount_opt(Size)
#define __deref_bcount_opt(Size)
#define __deref_opt_bcount_opt(Size)
#define __xcount(Size)
#define __deref_xcount(Size)
#define __deref_opt_xcount(Size)
#define __xcount_opt(Size)
#define __deref_xcount_opt(Size)
#define __deref_opt_xcount_opt(Size)
#define __checkReturn
#define __format_string
#define __nullterminated
#define __nullnullterminated
#define __fallthrough
#define __notnull
#define __maybenull
#define __readonly
#define __notreadonly
#define __maybereadonly
#define __notvalid
#define __maybevalid
#define __exceptthat
#define __override
#define __analysis_noreturn
#define __rpc_entry
#define __volatile
#define __nonvolatile
#define __possibly_notnullterminated
#define __in_range(Low, High)
#define __out_range(Low, High)
#define __in_data_source(Source)
#define __control_entrypoint(Category)
#define __data_entrypoint(Category)
#define __blocksOn(Resource)
#define __typefix(Type)
#define __struct_bcount(Size)
#define __struct_xcount(Size)
#define __field_ecount(Size)
#define __field_ecount_opt(Size)
#define __field_bcount(Size)
#define __field_bcount_opt(Size)
#define __field_ecount_full(Size)
#define __field_bcount_full(Size)
#define __field_ecount_part(Size, Length)
#define __field_bcount_part(Size, Length)
#define __field_range(Low, High)
#define __analysis_assume(Expression) ((void)0)
#define __analysis_hint(Hint)
#define __inner_checkReturn

/* Annotations of driver code. */
#define __drv_acquiresCancelSpinLock
#define __drv_acquiresCriticalRegion
#define __drv_acquiresExclusiveResource(Kind)
#define __drv_acquiresExclusiveResourceGlobal(Kind, Parameter)
#define __drv_acquiresPriorityRegion
#define __drv_acquiresResource(Kind)
#define __drv_acquiresResourceGlobal(Kind, Parameter)
#define __drv_aliasesMem
#define __drv_allocatesMem(Kind)
#define __drv_arg(Where, Annotations)
#define __drv_at(Where, Annotations)
#define __drv_callbackType(Kind)
#define __drv_clearDoInit
#define __drv_completionType(Kind)
#define __drv_constant
#define __drv_declspec(Annotations)
#define __drv_defined(Expression)
#define __drv_deref(Annotations)
#define __drv_dispatchType(Kind)
#define __drv_dispatchType_other
#define __drv_floatRestored
#define __drv_floatSaved
#define __drv_floatUsed
#define __drv_formatString(Kind)
#define __drv_freesMem(Kind)
#define __drv_fun(Annotations)
#define __drv_functionClass(Kind)
#define __drv_group(Annotations)
#define __drv_holdsCancelSpinLock
#define __drv_holdsCriticalRegion
#define __drv_holdsPriorityRegion
#define __drv_in(Annotations)
#define __drv_in_deref(Annotations)
#define __drv_interlocked
#define __drv_inTry
#define __drv_isCancelIRQL
#define __drv_isObjectPointer
#define __drv_maxFunctionIRQL(Irql)
#define __drv_maxIRQL(Irql)
#define __drv_minFunctionIRQL(Irql)
#define __drv_minIRQL(Irql)
#define __drv_mustHold(Kind)
#define __drv_mustHoldCancelSpinLock
#define __drv_mustHoldCriticalRegion
#define __drv_mustHoldGlobal(Kind, Parameter)
#define __drv_mustHoldPriorityRegion
#define __drv_neverHold(Kind)
#define __drv_neverHoldCancelSpinLock
#define __drv_neverHoldCriticalRegion
#define __drv_neverHoldGlobal(Kind, Parameter)
#define __drv_neverHoldPriorityRegion
#define __drv_nonConstant
#define __drv_notInTry
#define __drv_notPointer
#define __drv_out(Annotations)
#define __drv_out_deref(Annotations)
#define __drv_preferredFunction(Function, Why)
#define __drv_raisesIRQL(Irql)
#define __drv_releasesCancelSpinLock
#define __drv_releasesCriticalRegion
#define __drv_releasesExclusiveResource(Kind)
#define __drv_releasesExclusiveResourceGlobal(Kind, Parameter)
#define __drv_releasesPriorityRegion
#define __drv_releasesResource(Kind)
#define __drv_releasesResourceGlobal(Kind, Parameter)
#define __drv_reportError(Why)
#define __drv_requiresIRQL(Irql)
#define __drv_restoresIRQL
#define __drv_restoresIRQLGlobal(Kind, Parameter)
#define __drv_ret(Annotations)
#define __drv_ret_deref(Annotations)
#define __drv_sameIRQL
#define __drv_savesIRQL
#define __drv_savesIRQLGlobal(Kind, Parameter)
#define __drv_setsIRQL(Irql)
#define __drv_strictType(Type, Mode)
#define __drv_strictTypeMatch(Mode)
#define __drv_typeBitset
#define __drv_typeCond
#define __drv_typeConst
#define __drv_typeExpr
#define __drv_unit(Expression)
#define __drv_useCancelIRQL
#define __drv_valueIs(Expression)
#define __drv_when(Where, Annotations)

/* Kinds of code. */
#define __kernel_code
#define __kernel_driver
#define __user_code
#define __user_driver
#define _Kernel_entry_
#define _Kernel_entry_always_

#endif
