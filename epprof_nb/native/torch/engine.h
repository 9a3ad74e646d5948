// PyTorch's autograd engine: the node that the calling thread executes, read without the interpreter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof::torch {

// The number of a node that accumulates a gradient.
constexpr uint64_t kNoNumber = UINT64_MAX;
constexpr uint64_t kNoTask = UINT64_MAX;

struct Node {
  const unsigned char* address;
  uint64_t number;  // in the order in which its thread created nodes
  uint64_t thread;  // PyTorch's number of that thread
};

// Whether the node is of an operator that returns a view of its input, and thus launches nothing.
bool is_of_view(const Node& node);

// Whether `check_node` has confirmed the layout of nodes in this build.
bool can_read_nodes();
// Compares the node of a Python object with Python's values for it. `object` has `size` bytes
// behind its header. `edges` are the numbers of the next nodes, in order, without missing ones. The
// calling thread must have created the node.
bool check_node(const void* object, size_t size, uint64_t number, const uint64_t* edges,
                size_t edge_count);

// False if the calling thread executes no node. Call it and `next_node` only after `check_node`.
bool current_node(Node* node);
// The node at the other end of an edge; false if there is none.
bool next_node(const unsigned char* node, size_t edge, Node* next);
size_t edge_count(const unsigned char* node);

// Functions of PyTorch, available after `open_engine`.
bool open_engine(const char* library);
bool has_numbers();
uint64_t next_number();    // of the node that the calling thread creates next
uint64_t thread_number();  // PyTorch's number of the calling thread
bool gradients_enabled();  // whether operators of the calling thread create nodes
uint64_t current_task();   // number of the backward pass that it executes, or kNoTask

}  // namespace epprof::torch
