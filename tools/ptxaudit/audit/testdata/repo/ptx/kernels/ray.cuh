#pragma once
struct Range {
    int begin, end;
};
