/* SPDX-License-Identifier: Apache-2.0 */
/* The scale of a loss, and whether gradients were finite. */
#ifndef TRAIN_SCALER_H
#define TRAIN_SCALER_H

#include <frit/train.h>

#include "grad/rule.h"

frit_device *scaler_device(const frit_scaler *scaler);
/* 1 / scale, f32 of rank 0. */
term scaler_inverse(const frit_scaler *scaler);
/* A step found out whether its gradients were finite. */
frit_status scaler_note(frit_scaler *scaler, term ok, frit_err *err);
/* Undoes the last update, of a step that was undone; does nothing where it is known to have run. */
void scaler_go_back(frit_scaler *scaler);
/* Undoes updates that failed. */
frit_status scaler_settle(frit_scaler *scaler, const char *call, frit_err *err);

#endif
