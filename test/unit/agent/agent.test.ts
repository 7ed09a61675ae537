import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { backoffOf } from "#agent/agent.ts";
import { writeAgentStatus } from "#agent/status-file.ts";
import { seededRandom } from "#support/random.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** The highest number of these ordered moments within so many milliseconds. */
function mostWithin(moments: readonly number[], milliseconds: number): number {
  let first = 0;
  return moments.reduce((most, at, index) => {
    while (at - (moments[first] ?? at) >= milliseconds) first++;
    return Math.max(most, index - first + 1);
  }, 0);
}

describe("the agent's back-off", () => {
  it("F-27: limits 1,000 returning agents to 200 connections a second, after outages of any length", () => {
    for (const away of [1_000, 5_000, 8_000, 10_000, 12_000, 15_000, 20_000, 60_000]) {
      const random = seededRandom(away);
      const moments = Array.from({ length: 1_000 }, () => {
        const { returning } = backoffOf(15_000, random);
        let at = 15_000 * random();
        while (at < away) at += returning.next();
        return at;
      }).toSorted((a, b) => a - b);
      expect(mostWithin(moments, 1_000), `after ${away} ms`).to.be.at.most(200);
    }
  });
});

describe("status.json", () => {
  const dir = folderOfEachTest("status");
  const status = {
    state: "running",
    nodeId: "n",
    dc: "DC1",
    roles: [],
    labels: {},
    registered: true,
    health: { ok: true },
    version: "1",
    pid: 1,
  } as const;
  const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(file, "utf8")) as unknown;

  it("is created with its folder, 0600", async () => {
    const file = dir("state", "status.json");
    await writeAgentStatus(file, status);
    expect(await read(file)).to.deep.equal({ agent: status });
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect((await readdir(dir("state"))).toSorted()).to.deep.equal(["agent.json", "status.json"]);
    expect(await readFile(dir("state", "agent.json"), "utf8")).to.equal(`${JSON.stringify(status)}\n`);
  });

  it("keeps the fields that a run wrote", async () => {
    const file = dir("status.json");
    await writeFile(file, '{"run":"r1","milestones":["disks"],"agent":{"state":"starting"}}');
    await writeAgentStatus(file, status);
    expect(await read(file)).to.deep.equal({ run: "r1", milestones: ["disks"], agent: status });
  });

  it("replaces a file without a JSON object", async () => {
    const file = dir("status.json");
    for (const text of ["", "[1]", "{half"]) {
      await writeFile(file, text);
      await writeAgentStatus(file, status);
      expect(await read(file)).to.deep.equal({ agent: status });
    }
  });
});
