#pragma once
#include "rushlight/isa.h"
