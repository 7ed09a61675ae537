import { expect } from "chai";
import {
  formatBinary,
  formatBytes,
  formatDuration,
  formatSending,
  parseDuration,
  parseSize,
  shortAge,
  shortDuration,
  since,
  until,
} from "#base/units.ts";

describe("sizes", () => {
  it("of transfers are in units of 1000", () => {
    const bytes = [0, 812, 999_940, 999_960, 31_200_000, 1.5e9];
    expect(bytes.map(formatBytes)).to.deep.equal(["0 B", "812 B", "999.9 kB", "1.0 MB", "31.2 MB", "1.5 GB"]);
    expect(formatSending({ sent: 400_000, total: 2_000_000 })).to.equal("0.4/2.0 MB");
  });

  it("of memory and disks are in units of 1024, without a trailing .0", () => {
    const bytes = [0, 1023, 1024, 512 * 2 ** 20, 15.6 * 2 ** 30, 2 * 2 ** 40];
    expect(bytes.map(formatBinary)).to.deep.equal(["0 B", "1023 B", "1 KiB", "512 MiB", "15.6 GiB", "2 TiB"]);
  });
});

describe("sizes and durations of an operator", () => {
  it("have a unit; another text is none", () => {
    expect(["4096", "1K", "1.5 m", "10GiB", "2tb", "7B"].map(parseSize)).to.deep.equal([
      4096,
      1024,
      1.5 * 1024 ** 2,
      10 * 1024 ** 3,
      2 * 1024 ** 4,
      7,
    ]);
    expect(["", "K", "1X", "-1", "1GiBs"].map(parseSize)).to.deep.equal(Array(5).fill(undefined));
    expect(["500ms", "1.5s", "2m", "36h", "30d", "8w"].map(parseDuration)).to.deep.equal([
      0.5, 1.5, 120, 129_600, 2_592_000, 4_838_400,
    ]);
    expect(["", "5", "5 m", "1y"].map(parseDuration)).to.deep.equal(Array(4).fill(undefined));
  });
});

describe("durations and ages", () => {
  it("in columns take six characters at most", () => {
    const shown = [0, 440, 9940, 9960, 59_499, 59_600, 185_000, 3_725_000, 90_061_000].map(shortDuration);
    expect(shown).to.deep.equal(["0.0s", "0.4s", "9.9s", "10s", "59s", "1m00s", "3m05s", "1h02m", "1d01h"]);
  });

  it("in sentences have a space before each unit", () => {
    const shown = [440, 12_000, 59_600, 185_000, 3_725_000].map(formatDuration);
    expect(shown).to.deep.equal(["0.4 s", "12 s", "1 min 00 s", "3 min 05 s", "1 h 02 min"]);
  });

  it("show an age in a larger unit from two of that unit on", () => {
    const seconds = [0, 119, 120, 7199, 7200, 172_799, 172_800];
    expect(seconds.map((second) => shortAge(second * 1000))).to.deep.equal("0s 119s 2m 119m 2h 47h 2d".split(" "));
    expect([since("", 0), until("1970-01-01T00:00:01Z", 2000)]).to.deep.equal(["-", "expired"]);
  });
});
