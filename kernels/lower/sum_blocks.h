/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that one accumulator sums before its sum is added to those of the blocks before.
 *
 * The rounding error of a sum grows with the longest chain of additions, which blocks of b among n
 * elements shorten from n to b + n / b.  These numbers decide the last bits of results on every
 * target alike: they are no thresholds of a target (ir/tuning.def), and whoever changes one raises
 * PROGRAM_VERSION. */
#ifndef LOWER_SUM_BLOCKS_H
#define LOWER_SUM_BLOCKS_H

enum {
    SUM_BLOCK_CONTRACT = 256, /* products; fewer would cost rounds of the innermost loop */
    SUM_BLOCK_ROW = 64,       /* rounds of a group, or elements of a lane */
    SUM_BLOCK_SCAN = 64,      /* rounds; the carry goes to a base and begins anew */
    SUM_BLOCK_FFT = 64,       /* products along a line */
    SUM_BLOCK_POOL = 32       /* elements of a dim of the window, of which there are few */
};

#endif
