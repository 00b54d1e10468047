// Colours of the report and the SVG.
#pragma once

namespace hotpack {

// From short or small to long or large. Lightness rises evenly, so the order is visible without the hue (in grey, and
// with any colour deficiency). Every step stands out from white and from near-black paper.
inline constexpr const char* kRamp[] = {"#3d3580", "#3b5299", "#2f71a6", "#2190a5",
                                        "#35ac98", "#6cc484", "#add670", "#eadf6b"};
inline constexpr int kRampSteps = 8;

// Colours without an order that people with colour deficiencies can tell apart (Okabe and Ito, Color Universal Design).
inline constexpr const char* kKinds[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                         "#56b4e9", "#d55e00", "#f0e442", "#8a8f98"};
inline constexpr int kKindCount = 8;

}  // namespace hotpack
