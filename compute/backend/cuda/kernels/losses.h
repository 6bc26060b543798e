// What a part of a loss is made of.
#pragma once

// Kept is how many numbers a part of a loss has: the loss, and what task and kind of it keep.
enum { Kept = 4 };
