// Written by make_tables.py: the middles of segments and coefficients in powers of the distance to them.
#pragma once

namespace rl {

// Column 0 holds the middles. Rows are padded so that a column fills whole vectors.
template <int kRows, int kCoefficients, int kPadded>
struct Table {
  static constexpr int rows = kRows, coefficients = kCoefficients, padded = kPadded;
  alignas(64) double column[kCoefficients + 1][kPadded];
};

// One of which two registers of 64 bytes hold a column.
template <class T, int kCoefficients>
struct OctaveTable {
  static constexpr int coefficients = kCoefficients;
  alignas(64) T column[kCoefficients + 1][128 / sizeof(T)];
};

// The table for results of type T.
template <class T, class Full, class Single>
constexpr const auto& for_type(const Full& full, const Single& single) {
  if constexpr (sizeof(T) == 8) {
    return full;
  } else {
    return single;
  }
}

extern const Table<16, 16, 16> kErfcxDouble;
extern const Table<16, 10, 16> kErfcxSingle;
template <class T>
inline constexpr const auto& kErfcx = for_type<T>(kErfcxDouble, kErfcxSingle);
extern const Table<32, 14, 32> kErfinvDouble;
extern const Table<32, 7, 32> kErfinvSingle;
template <class T>
inline constexpr const auto& kErfinv = for_type<T>(kErfinvDouble, kErfinvSingle);
extern const Table<16, 15, 16> kI0eDouble;
extern const Table<16, 10, 16> kI0eSingle;
template <class T>
inline constexpr const auto& kI0e = for_type<T>(kI0eDouble, kI0eSingle);
extern const Table<16, 15, 16> kI1eDouble;
extern const Table<16, 9, 16> kI1eSingle;
template <class T>
inline constexpr const auto& kI1e = for_type<T>(kI1eDouble, kI1eSingle);
extern const Table<16, 11, 16> kK0eDouble;
extern const Table<16, 5, 16> kK0eSingle;
template <class T>
inline constexpr const auto& kK0e = for_type<T>(kK0eDouble, kK0eSingle);
extern const Table<16, 11, 16> kK1eDouble;
extern const Table<16, 5, 16> kK1eSingle;
template <class T>
inline constexpr const auto& kK1e = for_type<T>(kK1eDouble, kK1eSingle);
extern const Table<1, 8, 1> kI0SmallDouble;
extern const Table<1, 5, 1> kI0SmallSingle;
template <class T>
inline constexpr const auto& kI0Small = for_type<T>(kI0SmallDouble, kI0SmallSingle);
extern const Table<1, 8, 1> kI1SmallDouble;
extern const Table<1, 5, 1> kI1SmallSingle;
template <class T>
inline constexpr const auto& kI1Small = for_type<T>(kI1SmallDouble, kI1SmallSingle);
extern const Table<1, 8, 1> kK0SmallDouble;
extern const Table<1, 6, 1> kK0SmallSingle;
template <class T>
inline constexpr const auto& kK0Small = for_type<T>(kK0SmallDouble, kK0SmallSingle);
extern const Table<1, 8, 1> kK1SmallDouble;
extern const Table<1, 5, 1> kK1SmallSingle;
template <class T>
inline constexpr const auto& kK1Small = for_type<T>(kK1SmallDouble, kK1SmallSingle);
extern const Table<16, 11, 16> kJ0Double;
extern const Table<16, 7, 16> kJ0Single;
template <class T>
inline constexpr const auto& kJ0 = for_type<T>(kJ0Double, kJ0Single);
extern const Table<1, 14, 1> kModulus0Double;
extern const Table<1, 6, 1> kModulus0Single;
template <class T>
inline constexpr const auto& kModulus0 = for_type<T>(kModulus0Double, kModulus0Single);
extern const Table<1, 17, 1> kPhase0Double;
extern const Table<1, 8, 1> kPhase0Single;
template <class T>
inline constexpr const auto& kPhase0 = for_type<T>(kPhase0Double, kPhase0Single);
extern const Table<16, 11, 16> kJ1Double;
extern const Table<16, 7, 16> kJ1Single;
template <class T>
inline constexpr const auto& kJ1 = for_type<T>(kJ1Double, kJ1Single);
extern const Table<1, 14, 1> kModulus1Double;
extern const Table<1, 7, 1> kModulus1Single;
template <class T>
inline constexpr const auto& kModulus1 = for_type<T>(kModulus1Double, kModulus1Single);
extern const Table<1, 17, 1> kPhase1Double;
extern const Table<1, 8, 1> kPhase1Single;
template <class T>
inline constexpr const auto& kPhase1 = for_type<T>(kPhase1Double, kPhase1Single);
extern const Table<16, 13, 16> kY0Double;
extern const Table<16, 8, 16> kY0Single;
template <class T>
inline constexpr const auto& kY0 = for_type<T>(kY0Double, kY0Single);
extern const Table<16, 14, 16> kY1Double;
extern const Table<16, 8, 16> kY1Single;
template <class T>
inline constexpr const auto& kY1 = for_type<T>(kY1Double, kY1Single);
extern const Table<32, 13, 32> kGammalnDouble;
extern const Table<32, 7, 32> kGammalnSingle;
template <class T>
inline constexpr const auto& kGammaln = for_type<T>(kGammalnDouble, kGammalnSingle);
extern const Table<30, 12, 32> kDigammaDouble;
extern const Table<30, 7, 32> kDigammaSingle;
template <class T>
inline constexpr const auto& kDigamma = for_type<T>(kDigammaDouble, kDigammaSingle);
extern const Table<1, 15, 1> kCotangentRestDouble;
extern const Table<1, 9, 1> kCotangentRestSingle;
template <class T>
inline constexpr const auto& kCotangentRest = for_type<T>(kCotangentRestDouble, kCotangentRestSingle);
extern const Table<30, 13, 32> kTrigammaDouble;
extern const Table<30, 7, 32> kTrigammaSingle;
template <class T>
inline constexpr const auto& kTrigamma = for_type<T>(kTrigammaDouble, kTrigammaSingle);
extern const Table<12, 11, 16> kLog1pRestDouble;
extern const Table<12, 6, 16> kLog1pRestSingle;
template <class T>
inline constexpr const auto& kLog1pRest = for_type<T>(kLog1pRestDouble, kLog1pRestSingle);
extern const Table<48, 12, 48> kAiry0Double;
extern const Table<48, 8, 48> kAiry0Single;
template <class T>
inline constexpr const auto& kAiry0 = for_type<T>(kAiry0Double, kAiry0Single);
extern const Table<6, 9, 16> kAiryDecay0Double;
extern const Table<6, 4, 16> kAiryDecay0Single;
template <class T>
inline constexpr const auto& kAiryDecay0 = for_type<T>(kAiryDecay0Double, kAiryDecay0Single);
extern const Table<2, 9, 2> kAiryModulus0Double;
extern const Table<2, 5, 2> kAiryModulus0Single;
template <class T>
inline constexpr const auto& kAiryModulus0 = for_type<T>(kAiryModulus0Double, kAiryModulus0Single);
extern const Table<2, 10, 2> kAiryPhase0Double;
extern const Table<2, 5, 2> kAiryPhase0Single;
template <class T>
inline constexpr const auto& kAiryPhase0 = for_type<T>(kAiryPhase0Double, kAiryPhase0Single);
extern const Table<48, 12, 48> kAiry1Double;
extern const Table<48, 8, 48> kAiry1Single;
template <class T>
inline constexpr const auto& kAiry1 = for_type<T>(kAiry1Double, kAiry1Single);
extern const Table<6, 9, 16> kAiryDecay1Double;
extern const Table<6, 4, 16> kAiryDecay1Single;
template <class T>
inline constexpr const auto& kAiryDecay1 = for_type<T>(kAiryDecay1Double, kAiryDecay1Single);
extern const Table<2, 9, 2> kAiryModulus1Double;
extern const Table<2, 5, 2> kAiryModulus1Single;
template <class T>
inline constexpr const auto& kAiryModulus1 = for_type<T>(kAiryModulus1Double, kAiryModulus1Single);
extern const Table<2, 10, 2> kAiryPhase1Double;
extern const Table<2, 5, 2> kAiryPhase1Single;
template <class T>
inline constexpr const auto& kAiryPhase1 = for_type<T>(kAiryPhase1Double, kAiryPhase1Single);
extern const OctaveTable<double, 15> kErfinvOctavesDouble;
extern const OctaveTable<float, 8> kErfinvOctavesSingle;
template <class T>
inline constexpr const auto& kErfinvOctaves = for_type<T>(kErfinvOctavesDouble, kErfinvOctavesSingle);
extern const OctaveTable<double, 15> kLogitOctavesDouble;
extern const OctaveTable<float, 8> kLogitOctavesSingle;
template <class T>
inline constexpr const auto& kLogitOctaves = for_type<T>(kLogitOctavesDouble, kLogitOctavesSingle);
extern const OctaveTable<float, 7> kErfcxOctavesSingle;
extern const OctaveTable<double, 14> kNdtrOctavesDouble;
extern const OctaveTable<float, 7> kNdtrOctavesSingle;
template <class T>
inline constexpr const auto& kNdtrOctaves = for_type<T>(kNdtrOctavesDouble, kNdtrOctavesSingle);
extern const OctaveTable<double, 1> kPowersDouble;
extern const OctaveTable<float, 1> kPowersSingle;
template <class T>
inline constexpr const auto& kPowers = for_type<T>(kPowersDouble, kPowersSingle);
extern const double kTemme[13][16];      // of a^-k eta^n, DLMF 8.12.12
extern const double kErfcGrid[2][4096];  // erfc and minus its slope at k / 128
extern const double kErfcSteps[3][10];   // of (r d)^n, what a step d from the grid takes for each power of d^2

}  // namespace rl
