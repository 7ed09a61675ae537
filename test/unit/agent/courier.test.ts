import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "chai";
import type { Courier } from "#agent/carry-orders.ts";
import { openCourier } from "#agent/courier.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Order, OrderStep } from "#rollout/order.ts";
import { bundleFile } from "#updater/files.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const bundle = {
  sha256: "ab".repeat(32),
  size: 10,
  storePath: `/nix/store/${"0".repeat(32)}-kcore-0.2.0`,
  narHash: `sha256:${"0".repeat(52)}`,
  version: "0.2.0",
  arch: "x86_64",
};
const statement = JSON.stringify({
  kind: "ClusterUpdate",
  cluster: "lab",
  name: "u",
  spec: { target: { version: "0.2.0" }, selector: { allNodes: true } },
  bundle,
  signedAt: "2026-11-26T00:00:00.000Z",
});

function orderOf(step: OrderStep, seq: number): Order {
  const fence = { name: "u", epoch: 1, owner: "c1", generation: 1, seq };
  const signed = { statement, signature: "AA==", signer: "" };
  return { fence, step, signed, ownership: signed };
}

describe("what brings orders to the updater", () => {
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  let dir: TempDir;
  let courier: Courier;
  let asked = 0;
  let answer: () => Promise<never>;
  let room: (path: string) => Promise<{ free: number; dev: number } | undefined>;

  beforeEach(async () => {
    dir = await makeTempDir("courier");
    asked = 0;
    answer = () => new Promise(() => undefined);
    const controllers = { ask: () => (asked++, answer()) };
    const verify = ({ statement: text, signature }: Order["signed"]): Promise<unknown> =>
      signature === "AA==" ? Promise.resolve(JSON.parse(text)) : Promise.reject(new Error("unsigned"));
    room = () => Promise.resolve(undefined);
    const signal = new AbortController().signal;
    courier = openCourier({ folder: dir.path, controllers, verify, signal, log: quiet, room: (path) => room(path) });
  });
  afterEach(async () => {
    await courier.stop();
    await dir.remove();
  });

  const inbox = async (): Promise<Order> => JSON.parse(await readFile(join(dir.path, "inbox.json"), "utf8")) as Order;
  const lies = async (seq: number): Promise<Order> => {
    for (;;) {
      const order = await inbox().catch(() => undefined);
      if (order?.fence.seq === seq) return order;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };

  it("leaves the last of many orders there, however close they come", async () => {
    for (let seq = 1; seq <= 40; seq++) courier.bring(orderOf("fence", seq), () => undefined);
    await lies(40);
    await courier.stop();
    expect((await inbox()).fence.seq).to.equal(40);
  });

  it("lets go of a bundle that is being fetched when another order comes", async () => {
    answer = () => Promise.reject(new Error("not yet"));
    courier.bring(orderOf("prepare", 1), () => undefined);
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    courier.bring(orderOf("fence", 2), () => undefined);
    expect((await lies(2)).step).to.equal("fence");
  });

  it("lets go of bundles when what they held has been prepared", async () => {
    const file = bundleFile(dir.path, bundle.sha256);
    await mkdir(dirname(file));
    await writeFile(file, "");
    await writeFile(join(dir.path, "journal.json"), "{}");
    courier.bring(orderOf("fence", 1), () => undefined);
    await lies(1);
    expect(await readdir(dirname(file))).to.deep.equal([bundle.sha256]);
    courier.bring(orderOf("activate", 2), () => undefined);
    await lies(2);
    expect(await readdir(dir.path)).to.have.members(["inbox.json", "journal.json"]);
  });

  it("fetches nothing that the bastion did not sign, and leaves it to the updater to say so", async () => {
    const order = orderOf("prepare", 1);
    courier.bring({ ...order, signed: { ...order.signed, signature: "BB==" } }, () => undefined);
    expect(await lies(1)).to.not.have.property("problem");
    expect(asked).to.equal(0);
  });

  it("keeps nothing of a bundle that was called off when it fetches another one", async () => {
    const file = bundleFile(dir.path, bundle.sha256);
    await mkdir(dirname(file));
    await writeFile(`${file}.part`, "");
    answer = () => Promise.reject(new Error("not yet"));
    await writeFile(bundleFile(dir.path, `${"cd".repeat(32)}.part`), "");
    courier.bring(orderOf("prepare", 1), () => undefined);
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(await readdir(dirname(file))).to.deep.equal([`${bundle.sha256}.part`]);
  });

  it("C16: asks for room before it fetches, and of what finds none nothing stays", async () => {
    const file = bundleFile(dir.path, bundle.sha256);
    await mkdir(dirname(file));
    const lack = [
      {
        there: { free: 36, dev: 1 },
        store: { free: 36, dev: 1 },
        says: /^\/nix\/store has \d+ B free, and the bundle needs \d+(\.\d)? [KM]?i?B$/,
      },
      { there: { free: 99, dev: 1 }, store: { free: 29, dev: 2 }, says: /^\/nix\/store has / },
      { there: { free: 6, dev: 1 }, store: { free: 99, dev: 2 }, says: new RegExp(`^${dirname(file)} has `) },
      { there: { free: 7, dev: 1 }, store: { free: 30, dev: 2 }, says: undefined },
    ];
    for (const [seq, { there, store, says }] of lack.entries()) {
      room = (path) => Promise.resolve(path === "/nix/store" ? store : there);
      await writeFile(`${file}.part`, "abc");
      answer = () => Promise.reject(new KcoreError({ code: "UPDATE_BUNDLE_NO_ROOM", message: "asked" }));
      courier.bring(orderOf("prepare", seq), () => undefined);
      const { problem } = await lies(seq);
      if (says) expect(problem).to.match(says);
      else expect(problem).to.equal("asked");
      expect(await readdir(dirname(file))).to.deep.equal([]);
    }
    expect(asked).to.equal(1);
  });

  it("gives the order all the same when there is no room for its bundle, with the reason", async () => {
    answer = () => Promise.reject(new KcoreError({ code: "UPDATE_BUNDLE_NO_ROOM", message: "there is no room" }));
    courier.bring(orderOf("prepare", 3), () => undefined);
    expect((await lies(3)).problem).to.equal("there is no room");
  });
});
