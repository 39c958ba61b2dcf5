// Package critic is the critic: least-squares policy evaluation, LSPE(0).
//
//  1. steps.go has step-size schedules as data, [Steps].
//  2. matrix.go keeps B, a running average of φφᵀ, and its inverse: the formula of
//     Sherman and Morrison, the measures by which the inverse is trusted, and the
//     Tikhonov form and a fresh factorisation for when it is not.
//  3. lspe.go adds A, b̄ and r: the recursion.
//  4. critic.go is the recursion for one problem with up to thousands of features,
//     one transition at a time, [Critic]. Its passes over the matrices are fused,
//     in kernel.go.
//  5. bank.go is the recursion for up to millions of problems with a few features
//     each, a batch of transitions at a time, [Bank].
package critic
