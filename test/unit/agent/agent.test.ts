import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { backoffOf } from "#agent/agent.ts";
import { writeAgentStatus } from "#agent/status-file.ts";
import { seededRandom } from "#support/random.ts";

/** The highest number of these ordered moments within so many milliseconds. */
function mostWithin(moments: readonly number[], milliseconds: number): number {
  let first = 0;
  return moments.reduce((most, at, index) => {
    while (at - (moments[first] ?? at) >= milliseconds) first++;
    return Math.max(most, index - first + 1);
  }, 0);
}

describe("the agent's back-off", () => {
  it("F-27: brings a thousand back with at most 200 a second, however long the controllers were away", () => {
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
  let dir: string;
  beforeEach(async () => (dir = await mkdtemp(join(tmpdir(), "kcore-status-"))));
  afterEach(() => rm(dir, { recursive: true, force: true }));
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

  it("is made with its folder, 0600", async () => {
    const file = join(dir, "state", "status.json");
    await writeAgentStatus(file, status);
    expect(await read(file)).to.deep.equal({ agent: status });
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect((await readdir(join(dir, "state"))).toSorted()).to.deep.equal(["agent.json", "status.json"]);
    expect(await readFile(join(dir, "state", "agent.json"), "utf8")).to.equal(`${JSON.stringify(status)}\n`);
  });

  it("keeps what a run wrote there", async () => {
    const file = join(dir, "status.json");
    await writeFile(file, '{"run":"r1","milestones":["disks"],"agent":{"state":"starting"}}');
    await writeAgentStatus(file, status);
    expect(await read(file)).to.deep.equal({ run: "r1", milestones: ["disks"], agent: status });
  });

  it("replaces what is no JSON object", async () => {
    const file = join(dir, "status.json");
    for (const text of ["", "[1]", "{half"]) {
      await writeFile(file, text);
      await writeAgentStatus(file, status);
      expect(await read(file)).to.deep.equal({ agent: status });
    }
  });
});
