import { expect } from "chai";
import { isInWindow } from "#rollout/window.ts";
import { aSpec } from "#support/stepped-rollout.ts";

const everyDay = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const night = { from: "22:00", to: "04:00", days: ["sat"] };
const sunday = { from: "06:00", to: "06:00", days: ["sun"] };
const early = { from: "01:00", to: "05:30" };
/** The window, a time of March 2026 (the 1st was a Sunday), and whether the window is open then. */
const cases: readonly (readonly [string, object | undefined, string, boolean])[] = [
  ["is always open if none is given", undefined, "04T12:00:00Z", true],
  ["is closed before its first moment", early, "04T00:59:59.999Z", false],
  ["is open from its first moment", early, "04T01:00:00Z", true],
  ["is open in its last moment", early, "04T05:29:59.999Z", true],
  ["is closed from its end on", early, "04T05:30:00Z", false],
  ["is closed before it begins in the evening", night, "07T21:59:00Z", false],
  ["is open in the evening of its day", night, "07T22:00:00Z", true],
  ["is open after midnight, by the day on which it began", night, "08T03:59:00Z", true],
  ["is closed after midnight from its end on", night, "08T04:00:00Z", false],
  ["is closed in the evening of the next day", night, "08T22:30:00Z", false],
  ["is closed in the night that began on another day", night, "07T03:00:00Z", false],
  ["of a whole day is closed before it", sunday, "08T05:59:00Z", false],
  ["of a whole day is open from its beginning", sunday, "08T06:00:00Z", true],
  ["of a whole day is open in its last minute", sunday, "09T05:59:00Z", true],
  ["of a whole day is closed from its end on", sunday, "09T06:00:00Z", false],
  ...everyDay.flatMap((day, index) =>
    everyDay.map((other, at) => {
      const window = { from: "10:00", to: "11:00", days: [day] };
      return [
        `of ${day} alone is ${at === index ? "open" : "closed"} on ${other}`,
        window,
        `0${2 + at}T10:30:00Z`,
        at === index,
      ] as const;
    }),
  ),
];

describe("the maintenance window", () => {
  for (const [name, window, time, isOpen] of cases)
    it(name, () =>
      expect(isInWindow(window && aSpec({ window }).window, Date.parse(`2026-03-${time}`))).to.equal(isOpen),
    );
});
