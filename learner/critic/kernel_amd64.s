#include "textflag.h"

// Both kernels go row by row: four lanes of multiplications and additions, not
// fused, over the first ⌊l/4⌋·4 columns, then single ones for the rest. Lanes
// are summed as (s₀ + s₂) + (s₁ + s₃). kernel.go does the same in Go.

// func passAVX(a, v, phi, d, r *float64, l int, w float64)
TEXT ·passAVX(SB), NOSPLIT, $0-56
	MOVQ   a+0(FP), DI
	MOVQ   v+8(FP), SI
	MOVQ   phi+16(FP), BX
	MOVQ   d+24(FP), DX
	MOVQ   r+32(FP), CX
	MOVQ   l+40(FP), R8
	VMOVSD w+48(FP), X7
	MOVQ   R8, R9
	ANDQ   $~3, R9
	XORQ   R10, R10

passRow:
	CMPQ         R10, R8
	JGE          passDone
	VMULSD       (BX)(R10*8), X7, X6
	VMOVDDUP     X6, X0
	VINSERTF128  $1, X0, Y0, Y0      // w φ_i
	VXORPD       Y1, Y1, Y1          // lanes of the sum
	VXORPD       X2, X2, X2          // the rest of it
	XORQ         R11, R11

passQuad:
	CMPQ    R11, R9
	JGE     passRest
	VMULPD  (DX)(R11*8), Y0, Y3
	VADDPD  (DI)(R11*8), Y3, Y3
	VMOVUPD Y3, (DI)(R11*8)
	VMULPD  (CX)(R11*8), Y3, Y3
	VADDPD  Y3, Y1, Y1
	ADDQ    $4, R11
	JMP     passQuad

passRest:
	CMPQ   R11, R8
	JGE    passSum
	VMULSD (DX)(R11*8), X0, X3
	VADDSD (DI)(R11*8), X3, X3
	VMOVSD X3, (DI)(R11*8)
	VMULSD (CX)(R11*8), X3, X3
	VADDSD X3, X2, X2
	INCQ   R11
	JMP    passRest

passSum:
	VEXTRACTF128 $1, Y1, X3
	VADDPD       X3, X1, X1          // s₀ + s₂, s₁ + s₃
	VUNPCKHPD    X1, X1, X3
	VADDSD       X3, X1, X1
	VADDSD       X2, X1, X1
	VADDSD       (SI)(R10*8), X1, X1
	VMOVSD       X1, (SI)(R10*8)
	LEAQ         (DI)(R8*8), DI
	INCQ         R10
	JMP          passRow

passDone:
	VZEROUPPER
	RET

// func symmAVX(p, z, u, y, phi, v *float64, l int)
TEXT ·symmAVX(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), DI
	MOVQ z+8(FP), DX
	MOVQ u+16(FP), SI
	MOVQ y+24(FP), BX
	MOVQ phi+32(FP), CX
	MOVQ v+40(FP), R12
	MOVQ l+48(FP), R8
	MOVQ R8, R9
	ANDQ $~3, R9
	XORQ R10, R10

symmRow:
	CMPQ         R10, R8
	JGE          symmDone
	VMOVDDUP     (DX)(R10*8), X0
	VINSERTF128  $1, X0, Y0, Y0      // z_i
	VXORPD       Y1, Y1, Y1          // lanes of u_i
	VXORPD       Y2, Y2, Y2          // lanes of y_i
	VXORPD       X3, X3, X3          // the rest of them
	VXORPD       X4, X4, X4
	XORQ         R11, R11

symmQuad:
	CMPQ    R11, R9
	JGE     symmRest
	VMULPD  (DX)(R11*8), Y0, Y5
	VMOVUPD (DI)(R11*8), Y6
	VSUBPD  Y5, Y6, Y6
	VMOVUPD Y6, (DI)(R11*8)
	VMULPD  (CX)(R11*8), Y6, Y5
	VADDPD  Y5, Y1, Y1
	VMULPD  (R12)(R11*8), Y6, Y6
	VADDPD  Y6, Y2, Y2
	ADDQ    $4, R11
	JMP     symmQuad

symmRest:
	CMPQ   R11, R8
	JGE    symmSum
	VMULSD (DX)(R11*8), X0, X5
	VMOVSD (DI)(R11*8), X6
	VSUBSD X5, X6, X6
	VMOVSD X6, (DI)(R11*8)
	VMULSD (CX)(R11*8), X6, X5
	VADDSD X5, X3, X3
	VMULSD (R12)(R11*8), X6, X6
	VADDSD X6, X4, X4
	INCQ   R11
	JMP    symmRest

symmSum:
	VEXTRACTF128 $1, Y1, X5
	VADDPD       X5, X1, X1
	VUNPCKHPD    X1, X1, X5
	VADDSD       X5, X1, X1
	VADDSD       X3, X1, X1
	VMOVSD       X1, (SI)(R10*8)
	VEXTRACTF128 $1, Y2, X5
	VADDPD       X5, X2, X2
	VUNPCKHPD    X2, X2, X5
	VADDSD       X5, X2, X2
	VADDSD       X4, X2, X2
	VMOVSD       X2, (BX)(R10*8)
	LEAQ         (DI)(R8*8), DI
	INCQ         R10
	JMP          symmRow

symmDone:
	VZEROUPPER
	RET
