// Stacks of backward passes. Autograd's threads run no Python, so launches of a node there get the
// stack in which the forward pass created the node.
//
// Autograd creates the node of an operator before it runs the operator, so at a launch in the
// forward pass, the newest node belongs to its operator. In the backward pass, the node that runs
// has this number.
#pragma once

#include "core/columns.h"

namespace epprof::torch {

void record_node_stacks(bool on);
// Columns of the launches since the last call: with a stack, forward_thread, forward_number (the
// newest node of the thread), forward_stack and forward_creates (whether the operator may have created
// the node); without, backward_correlation, backward_thread, backward_number (the node that ran),
// backward_is_own (0: the node has no number, and this is the last one with a number that ran before
// it) and backward_is_view (its operator launched nothing).
epprof_columns* drain_node_stacks();

}  // namespace epprof::torch
