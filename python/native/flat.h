// The mean dynamics of worlds side by side, n sources each, in arrays of which the
// compiler makes wide instructions. Pointers are to the first world of a call.

#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("default", "avx2"))) // as the processor has it
#else
#define WIDE
#endif

// Where worlds write; see frame in worlds.go.
struct row {
	intptr_t worlds, n, most;
	double *reward, *interest;
	float *seen;
	uint8_t *crawled;
	intptr_t *crawl, *crawls;
};

// States of sources, n for each world: x, its mean state, what its last crawl found,
// as it is observed, and when that was.
struct states {
	double *x;
	float *found;
	int32_t *last;
	const intptr_t *epoch; // 1 for each world
};

// x ← αx + u, the units in which x and rewards are seen, and how ages are seen, up to
// the last one, from which they are seen alike.
struct growth {
	const double *alpha, *gain, *rate;
	double pay;
	const float *ages;
	int32_t oldest;
};

// key orders floats: of equal ones it is the same, and that of 0 is 0.
static inline int32_t key(int32_t bits) {
	int32_t size = bits & INT32_MAX, sign = bits >> 31;
	return (size ^ sign) - sign;
}

// flat_choose has each world crawl the source with the greatest score, the first of
// equal ones. Worlds that are over, and those of which a score is NaN or none is
// above −∞, have −1 crawls. It returns how many these are.
WIDE static intptr_t flat_choose(struct row to, const int32_t *scores, const uint8_t *over) {
	const int32_t infinite = 0x7f800000;
	intptr_t left = 0, n = to.n;
	for (intptr_t k = 0; k < to.worlds; k++, scores += n) {
		for (intptr_t c = 0; c < to.crawls[k]; c++) {
			intptr_t i = k * n + to.crawl[k * to.most + c];
			to.interest[i] = to.crawled[i] = 0;
		}
		int32_t most = INT32_MIN, size = 0, behind = 0, sources = n;
		for (int32_t i = 0; i < sources; i++) {
			int32_t y = key(scores[i]), s = scores[i] & INT32_MAX;
			most = y > most ? y : most;
			size = s > size ? s : size;
		}
		for (int32_t i = 0; i < sources; i++) {
			int32_t here = -(key(scores[i]) == most) & (sources - i);
			behind = here > behind ? here : behind;
		}
		int refused = over[k] || size > infinite || most == -infinite;
		to.crawl[k * to.most] = n - behind;
		to.crawls[k] = refused ? -1 : 1;
		left += refused;
	}
	return left;
}

// show moves a world's states on, and writes how it is seen: states, ages, and what
// the last crawls found.
static inline void show(intptr_t n, int32_t now, const struct growth *by, double *restrict x, const double *restrict alpha, const double *restrict gain,
                        const double *restrict rate, const int32_t *restrict last, const float *restrict known, const float *restrict found, float *restrict seen) {
	for (intptr_t i = 0; i < n; i++) {
		x[i] = alpha[i] * x[i] + gain[i]; // (2)
		seen[i] = (float)(x[i] * rate[i]);
	}
	for (intptr_t i = 0; i < n; i++) {
		int32_t age = now - last[i];
		seen[n + i] = known[age < by->oldest ? age : by->oldest];
	}
	for (intptr_t i = 0; i < n; i++) {
		seen[2 * n + i] = found[i];
	}
}

// flat_step has worlds crawl what was chosen, go on to their epochs, and show what
// they brought and what is seen then.
WIDE static void flat_step(struct row to, struct states s, struct growth by, struct growth still) {
	intptr_t n = to.n;
	for (intptr_t k = 0; k < to.worlds; k++) {
		double *x = s.x + k * n;
		float *found = s.found + k * n;
		int32_t *last = s.last + k * n, now = s.epoch[k];
		double reward = 0;
		for (intptr_t c = 0; c < to.crawls[k]; c++) {
			intptr_t i = to.crawl[k * to.most + c];
			reward += x[i];
			to.interest[k * n + i] = x[i];
			to.crawled[k * n + i] = 1;
			found[i] = (float)(x[i] * by.rate[i]);
			last[i] = now - 1;
			x[i] = 0; // (3): 0 grows to u below
		}
		to.reward[k] = reward * by.pay;
		const struct growth *grow = now == 0 ? &still : &by;
		show(n, now, grow, x, grow->alpha, grow->gain, grow->rate, last, grow->ages, found, to.seen + k * 3 * n);
	}
}
