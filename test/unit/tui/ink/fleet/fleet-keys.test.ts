import { expect } from "chai";
import { pressFleetKey } from "#tui/ink/fleet/fleet-keys.ts";
import { arrangeFleet } from "#tui/ink/fleet/fleet-scene.ts";
import { freshFleetUi } from "#tui/ink/fleet/fleet-ui.ts";
import { concernOfUpdate, updatesSection } from "#tui/ink/fleet/updates-section.ts";
import { lineWidth } from "#tui/ink/text.ts";
import { fleetLines, fleetNode, fleetNow, fleetScene, rollout, smallFleet, typeFleetKeys } from "#support/fleet.ts";
import { plainTheme } from "#support/scenes.ts";

const press = (name: string, keys: readonly string[] = []) =>
  pressFleetKey(fleetScene({ ui: typeFleetKeys(keys) }), { name, text: name.length === 1 ? name : "" });
const typed = (text: string) => text.split("");
const keysOf = (keys: readonly string[]) => fleetScene({ ui: typeFleetKeys(keys) }).listing.keys;
const names = (keys: readonly string[]) =>
  keysOf(keys).map((key) => smallFleet().nodes.find(({ id }) => id === key)?.hostname);
const shown = (keys: readonly string[], rows = 24) =>
  fleetLines({ rows, ui: typeFleetKeys(keys, { rows }) }).join("\n");

describe("the dashboard", () => {
  it("has the command that a rollout waits for, and such rollouts first", () => {
    for (const [waits, verb] of [
      ["approval", "approve u"],
      ["approval: n1 has to reboot", "approve u"],
      ["promotion, or 9 s", "promote u"],
      ["the bastion: drain of n1 (unattended: kcore update cluster run-hooks u)", "run-hooks u"],
      ["the bastion: drain of n1 (attended by operator ann on b since 12:00, unless …)", "get u -w"],
      ["n2, which is not ready; approval: n1 has to reboot", "approve u"],
      ["n1, which is not ready", "get u -w"],
    ] as const) {
      const update = rollout({ name: "u", phase: "rolling_out", waits, nodes: [] });
      expect(updatesSection.command(update, fleetNow), waits).to.equal(`kcore update cluster ${verb}`);
      expect(concernOfUpdate(update) < 2, waits).to.equal(!verb.startsWith("get"));
    }
  });

  it("changes sections by Tab, Shift-Tab and number", () => {
    expect(typeFleetKeys(["tab"]).section).to.equal("dcs");
    expect(typeFleetKeys(["tab", "tab", "tab", "tab", "tab", "tab"]).section).to.equal("nodes");
    expect(typeFleetKeys(["shift+tab"]).section).to.equal("updates");
    expect([typeFleetKeys(["4"]).section, typeFleetKeys(["9"]).section]).to.deep.equal(["certificates", "nodes"]);
  });

  it("finds rows with all typed words in any column", () => {
    expect(names(["/", ...typed("tier=ssd")])).to.deep.equal(["n7", "n5", "n9", "n1", "n3"]);
    expect(names(["/", ...typed("DC2"), "space", ...typed("ready")])).to.deep.equal(["n6", "n3"]);
    expect(names(["/", ...typed("dc2"), "escape"])).to.have.length(10);
    expect(shown(["/", ...typed("nobody"), "enter"])).to.contain("nothing matches; a shows all");
  });

  it("shows only rows that need attention by f, and all by a", () => {
    expect(names(["f"])).to.deep.equal(["n4", "n7", "n5", "n6", "n9"]);
    expect(names(["f", "f"])).to.have.length(10);
    expect(names(["f", "/", "n", "enter", "a"])).to.have.length(10);
  });

  it("sorts by the next column with s, and reverses the order with S", () => {
    expect(names(["s"]).slice(0, 3)).to.deep.equal(["n1", "n2", "n3"]);
    expect(names(["s", "S"]).slice(0, 3)).to.deep.equal(["n10", "n9", "n8"]);
    expect(shown(["s", "s", "s"])).to.contain("by dc");
  });

  it("opens a row with Enter, and returns to the selected row with Esc", () => {
    const open = ["down", "down", "down", "enter"];
    expect(shown(open)).to.match(/── n6.*\n status +Ready/);
    expect(shown(open)).to.contain(`won            "ssd"`);
    expect(typeFleetKeys([...open, "escape"])).to.deep.include({ isOpen: false, section: "nodes" });
    expect(fleetScene({ ui: typeFleetKeys([...open, "escape"]) }).selected).to.equal(3);
    expect(shown([...open, "n"])).to.match(/── n9[, ]/);
  });

  it("opens a datacenter as the list of its nodes", () => {
    expect(names(["2", "down", "enter"])).to.deep.equal(["n6", "n9", "n3"]);
    expect(shown(["2", "down", "enter"])).to.contain("only DC2: 3");
  });

  it("shows lag and alarms of controllers, and those that do not answer", () => {
    const text = fleetLines({ columns: 160, ui: typeFleetKeys(["3"]) }).join("\n");
    expect(text).to.match(/192\.0\.2\.3:9090 +DC2 +connected .*no +12 +0 +81ms/);
    expect(text).to.contain("192.0.2.3:9090 gave no answer within 3 s");
    expect(shown(["3", "enter"])).to.contain("340 registers, 3 tombstones, 0 quarantined");
  });

  it("keeps the last data, marked as stale, when its controller is lost, and names the next controller", () => {
    const link = { state: "lost", endpoint: "192.0.2.1:9090", why: "gone", trying: "192.0.2.2:9090" } as const;
    const text = fleetLines({ columns: 110, link }).join("\n");
    expect(text)
      .to.contain("lost 192.0.2.1:9090, trying 192.0.2.2:9090 …")
      .and.to.match(/── 10 nodes.* stale /);
    expect(text).to.contain("n4");
  });

  it("reports a connected controller that sends no data", () =>
    expect(fleetLines({ now: fleetNow + 60_000 })[0]).to.contain("192.0.2.1:9090 is silent, data 60s old"));

  it("leaves by q and Ctrl-C, and copies the row's command by c", () => {
    expect([press("q").effect, press("ctrl+c", ["/"]).effect]).to.deep.equal([{ type: "leave" }, { type: "leave" }]);
    expect(press("c").effect).to.deep.equal({
      type: "copy",
      text: "kcore exec --on n4 -- systemctl status kcore-node-agent",
    });
    expect(press("c", ["down", "down"]).effect).to.deep.equal({ type: "copy", text: "kcore node approve n5" });
    expect(press("c", ["G"]).effect).to.deep.include({ text: `kcore describe node ${fleetNode(8).id}` });
    expect(press("c", ["3"]).effect).to.deep.equal({
      type: "copy",
      text: "kcore -s 192.0.2.1:9090 get replication-status",
    });
  });

  it("S-4: shows no control characters of a node", () => {
    const evil = fleetNode(1, { hostname: "x\u001b[2Jy\nz", reason: "\u009b31m" });
    const lines = fleetLines({ snapshot: { ...smallFleet(), nodes: [evil] } });
    expect(lines).to.have.length(24);
    // oxlint-disable-next-line no-control-regex
    expect(lines.join("")).to.not.match(/[\u0000-\u001f\u007f-\u009f]/);
  });

  it("reports that the open row no longer exists", () => {
    const ui = typeFleetKeys(["enter"]);
    const text = fleetLines({ ui, snapshot: { ...smallFleet(), nodes: [] } }).join("\n");
    expect(text).to.contain("it is no longer there");
  });

  for (const [columns, rows] of [
    [40, 8],
    [60, 15],
    [80, 24],
    [200, 60],
    [20, 4],
  ] as const)
    it(`fills ${columns}x${rows} exactly in every section`, () => {
      for (const keys of [[], ["2"], ["3"], ["4"], ["5"], ["enter"], ["3", "enter"], ["?"], ["/", "n"]]) {
        const { lines } = fleetScene({ columns, rows, ui: typeFleetKeys(keys, { columns, rows }) });
        expect(lines, keys.join(" ")).to.have.length(rows);
        if (columns >= 40)
          for (const line of fleetLines({ columns, rows, ui: typeFleetKeys(keys) }))
            expect(line.length).to.be.at.most(columns);
      }
    });

  it("draws only the visible of 10,000 nodes, and sorts them once", () => {
    const snapshot = { ...smallFleet(), nodes: Array.from({ length: 10_000 }, (_, index) => fleetNode(index + 1)) };
    const draw = (ui = freshFleetUi) =>
      arrangeFleet({
        snapshot,
        link: { state: "live", endpoint: "192.0.2.1:9090" },
        ui,
        theme: plainTheme,
        now: fleetNow,
        size: { columns: 120, rows: 50 },
      });
    const first = draw();
    let scene = first;
    for (let count = 0; count < 5; count++) scene = draw(pressFleetKey(scene, { name: "pagedown", text: "" }).ui);
    expect(scene.lines).to.have.length(50);
    expect(scene.selected).to.be.greaterThan(200);
    expect(lineWidth(scene.lines[5] ?? [])).to.be.at.most(120);
    expect(scene.listing.keys).to.equal(first.listing.keys);
  });
});
