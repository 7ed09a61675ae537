import {
  betweenDatacenters,
  cutBetween,
  datacenters,
  droppedOn,
  everyLink,
  failingDisk,
  flapping,
  frozen,
  fullDisk,
  jumping,
  killed,
  reset,
  restarted,
  setBack,
  type Fault,
} from "./faults.ts";

const alone = (at: number): readonly (readonly number[])[] => [[at], [0, 1, 2, 3].filter((other) => other !== at)];
const receivesNothing = (at: number) => everyLink.filter(([to]) => to === at);
const sendsNothing = (at: number) => everyLink.filter(([, from]) => from === at);
const lossy = "numgen random mod 100 < 30 drop";
const ring = [
  [1, 3],
  [3, 1],
  [0, 2],
  [2, 0],
] as const;

/** The faults of each chapter run on one cluster. */
export const chapters: Readonly<Record<string, readonly Fault[]>> = {
  cuts: [
    cutBetween("the datacenters are cut off from each other", datacenters),
    cutBetween("the datacenters are cut off again", datacenters),
    cutBetween("the datacenters refuse each other (reset)", datacenters, reset),
    cutBetween("1 is cut off", alone(1)),
    cutBetween("0 is cut off (reset)", alone(0), reset),
    cutBetween("3 is cut off", alone(3)),
    cutBetween("2 is cut off", alone(2)),
    cutBetween("nobody reaches anybody", [[0], [1], [2], [3]]),
    cutBetween("nobody reaches anybody (reset)", [[0], [1], [2], [3]], reset),
    cutBetween("in pairs across the datacenters", [
      [0, 2],
      [1, 3],
    ]),
  ],
  "one way": [
    droppedOn(
      "DC2 hears nothing of DC1",
      betweenDatacenters.filter(([at]) => at >= 2),
    ),
    droppedOn(
      "DC1 hears nothing of DC2",
      betweenDatacenters.filter(([at]) => at < 2),
    ),
    droppedOn("0 hears nobody", receivesNothing(0)),
    droppedOn("nobody hears 0", sendsNothing(0)),
    droppedOn("3 hears nobody", receivesNothing(3)),
    droppedOn("nobody hears 2", sendsNothing(2)),
    droppedOn("each reaches its neighbours only", ring),
    droppedOn("30 % of all packets are lost", everyLink, lossy),
    droppedOn("30 % are lost between the datacenters", betweenDatacenters, lossy),
  ],
  flapping: [
    flapping("the line between the datacenters flaps", betweenDatacenters, 500),
    flapping("the line between the datacenters flaps fast", betweenDatacenters, 150),
    flapping("the line between the datacenters flaps (reset)", betweenDatacenters, 500, reset),
    flapping("all lines flap", everyLink, 700),
    flapping("the line to 1 flaps", [...receivesNothing(1), ...sendsNothing(1)], 300),
    flapping(
      "one direction flaps",
      betweenDatacenters.filter(([at]) => at < 2),
      400,
    ),
  ],
  kills: [
    killed("kill -9 of 1", [1]),
    killed("kill -9 of the founder", [0]),
    killed("kill -9 of 2", [2]),
    killed("kill -9 of 3", [3]),
    killed("kill -9 of both of DC2", [2, 3]),
    killed("kill -9 of one of each datacenter", [1, 2]),
    killed("kill -9 of all but 3", [0, 1, 2]),
    killed("kill -9 of all", [0, 1, 2, 3]),
  ],
  restarts: [
    restarted("2 is restarted", [2]),
    restarted("one after the other is restarted", [3, 2, 1, 0]),
    restarted("the founder is restarted", [0]),
  ],
  freezes: [
    frozen("1 is stopped (SIGSTOP)", [1]),
    frozen("the founder is stopped", [0]),
    frozen("both of DC2 are stopped", [2, 3]),
    frozen("all but 2 are stopped", [0, 1, 3]),
    frozen("3 is stopped", [3]),
  ],
  disks: [
    fullDisk("the disk of 1 is full", [1]),
    fullDisk("the founder's disk is full", [0]),
    fullDisk("both disks of DC2 are full", [2, 3]),
    fullDisk("the disks of all are full", [0, 1, 2, 3]),
    failingDisk("the disk of 3 fails (EIO)"),
    failingDisk("the disk of 3 fails again"),
    failingDisk("the disk of 3 fails a third time"),
  ],
  clocks: [
    jumping("the clock of 1 is 3 s ahead", { 1: ["+3s"] }),
    jumping("the clock of 2 is 3 s behind", { 2: ["-3s"] }),
    jumping("the clock of 3 jumps an hour ahead", { 3: ["+0s", "+3600s", "+0s"] }),
    jumping("the founder's clock jumps an hour back", { 0: ["+0s", "-3600s", "+0s"] }),
    jumping("the clock of 1 jumps to and fro", { 1: ["+4s", "-4s", "+2s", "-1s", "+60s", "+0s"] }),
    jumping("the clocks of DC1 and DC2 are 4 s apart", { 0: ["-2s"], 1: ["-2s"], 2: ["+2s"], 3: ["+2s"] }),
  ],
  "old folders": [
    setBack("the folder of 1 is put back", 1),
    setBack("the folder of 2 is put back", 2),
    setBack("the founder's folder is put back", 0),
    setBack("the folder of 1 is put back again", 1),
    setBack("the folder of 3 is put back", 3),
  ],
};
