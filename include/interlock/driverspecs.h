/*
 * driverspecs.h: the older annotations of driver code, which expand to nothing. The newer ones are in annotations.h.
 */
#ifndef INTERLOCK_DRIVERSPECS_H
#define INTERLOCK_DRIVERSPECS_H

#include <interlock/annotations.h>

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
