/*
 * win32/sal1.h: the older annotations, which expand to nothing. sal.h and driverspecs.h include it, and windows.h in C. In C++ the standard
 * library uses some of the names for variables. They are defined only with INTERLOCK_SAL1: include its headers before.
 */
#ifndef INTERLOCK_WIN32_SAL1_H
#define INTERLOCK_WIN32_SAL1_H

#include <stddef.h> /* a translation unit of this header alone must declare something */

#include <interlock/annotations.h>

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

/* What code is. */
#define __kernel_code
#define __kernel_driver
#define __user_code
#define __user_driver
#define _Kernel_entry_
#define _Kernel_entry_always_

#endif
