// Package critic is the critic: least-squares policy evaluation, LSPE(0).
//
//  1. steps.go has step-size schedules as data, [Steps].
//  2. inverse.go keeps B, a running average of φφᵀ, and its inverse: the formula of
//     Sherman and Morrison, the measures by which the inverse is trusted, and the
//     Tikhonov form and a fresh factorisation for when it is not.
//  3. critic.go adds A, b̄, r and η: the recursion, [Critic].
//  4. small.go keeps the inverse of a few features, for learners of a million sources
//     that have one each, [Small].
package critic
