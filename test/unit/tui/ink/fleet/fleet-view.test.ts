import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { FleetView, type FleetViewOptions } from "#tui/ink/fleet/fleet-view.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { fleetNode, fleetNow, smallFleet } from "#support/fleet.ts";
import { plainTheme } from "#support/scenes.ts";

describe("the dashboard on a terminal", () => {
  let view: FleetView | undefined;
  let terminal: FakeTerminal;
  let timers: FakeTimers;
  let left: number;
  let opened: (string | undefined)[];

  beforeEach(() => ([terminal, timers, left, opened] = [new FakeTerminal(), new FakeTimers(), 0, []]));
  afterEach(async () => {
    await view?.close();
    view = undefined;
  });

  const open = async (options: Partial<FleetViewOptions> = {}) => {
    view = new FleetView({
      stdin: terminal.stdin,
      stdout: terminal.stdout,
      theme: plainTheme,
      snapshot: smallFleet(),
      leave: () => left++,
      openNode: (id) => opened.push(id),
      now: () => fleetNow,
      timers,
      ...options,
    });
    await pass(200);
    return view;
  };
  /** Passes simulated time, and lets ink write its frame. */
  const pass = async (milliseconds: number) => {
    timers.pass(milliseconds);
    await new Promise((resolve) => setTimeout(resolve, 3));
  };
  const type = async (keys: string) => {
    terminal.type(keys);
    await new Promise((resolve) => setImmediate(resolve));
    await pass(50);
  };
  const shown = () => stripVTControlCharacters(terminal.written);
  /** The text that the view writes during this work. */
  const writes = async (work: () => void, milliseconds = 200): Promise<string> => {
    const { length } = terminal.written;
    work();
    await pass(milliseconds);
    return terminal.written.slice(length);
  };

  it("restores the terminal when closed, and writes nothing afterwards", async () => {
    const one = await open();
    expect(shown()).to.contain("kcore top  context prod");
    await one.close();
    const { length } = terminal.written;
    one.show(smallFleet());
    await one.close();
    await pass(1000);
    expect([terminal.isRaw, terminal.written.length]).to.deep.equal([false, length]);
  });

  it("writes nothing without changes", async () => {
    const one = await open();
    for (let count = 0; count < 5; count++)
      expect(await writes(() => one.show({ ...smallFleet(), at: fleetNow - count * 100 }))).to.equal("");
    expect(await writes(() => one.showLink({ state: "live", endpoint: "192.0.2.1:9090" }))).to.equal("");
  });

  it("shows a lost and a restored connection", async () => {
    const one = await open();
    const link = { state: "lost", endpoint: "192.0.2.1:9090", why: "gone", trying: "192.0.2.2:9090" } as const;
    expect(await writes(() => one.showLink(link))).to.contain("trying 192.0.2.2:9090");
    const back = await writes(() => {
      one.show({ ...smallFleet(), asked: "192.0.2.2:9090" });
      one.showLink({ state: "live", endpoint: "192.0.2.2:9090" });
    });
    expect(back).to.match(/live/);
  });

  it("requests details of the node whose page is open", async () => {
    const one = await open();
    await type("\r");
    expect(opened).to.deep.equal([fleetNode(4).id]);
    const detail = {
      id: fleetNode(4).id,
      facts: [],
      runs: [{ id: "20261121-061500-a1b2", state: "done", at: "", command: "kcore orchestrate x", milestone: "Ready" }],
    };
    expect(await writes(() => one.show({ ...smallFleet(), detail }))).to.contain("reached Ready");
    await type("n");
    await type("h");
    expect(opened).to.deep.equal([fleetNode(4).id, fleetNode(7).id, undefined]);
  });

  it("copies a command to the terminal's clipboard with a message, and leaves once", async () => {
    await open();
    await type("cq");
    terminal.emit("error", new Error("EIO"));
    expect(left).to.equal(1);
    const command = "kcore exec --on n4 -- systemctl status kcore-node-agent";
    expect(terminal.written).to.contain(`\u001b]52;c;${Buffer.from(command).toString("base64")}\u0007`);
    expect(shown()).to.contain(`copied: ${command}`);
  });
});
