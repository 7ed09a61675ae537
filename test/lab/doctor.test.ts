import { expect } from "chai";
import type { Finding } from "#cli/validate/findings.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labRoster, openBastion, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

interface Broken {
  readonly is: string;
  /** Shell texts on n1 that break it, and that mend it again. */
  readonly broken: string;
  readonly mended: string;
  readonly words?: readonly string[];
  /** One of the first two findings. */
  readonly cause: RegExp;
}

const unit = (command: string) =>
  `printf '[Service]\\nExecStart=/bin/sh -c "${command}"\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/demo.service; systemctl daemon-reload; systemctl enable --now demo`;
const noUnit =
  "systemctl unmask demo; systemctl disable --now demo; systemctl reset-failed; rm -f /etc/systemd/system/demo.service; systemctl daemon-reload";
const units = ["--set", "units=demo"];

const rows: readonly Broken[] = [
  {
    is: "a masked unit",
    broken: "systemctl mask demo",
    mended: noUnit,
    words: units,
    cause: /^wanted units are not masked.*demo is masked/,
  },
  {
    is: "a unit that is refused for its token",
    broken: unit("echo level=fatal msg=invalid token >&2; exit 1"),
    mended: `${noUnit}; journalctl --rotate; journalctl --vacuum-time=1s`,
    words: units,
    cause: /^tokens and certificates are accepted: demo: .*invalid token/,
  },
  {
    is: "a unit that nothing started",
    broken: `${unit("sleep 3600")}; systemctl stop demo`,
    mended: noUnit,
    words: units,
    cause: /^wanted units run.*demo is inactive/,
  },
  {
    is: "a unit that fails, which nobody named",
    broken: unit("echo no configuration >&2; exit 3"),
    mended: noUnit,
    cause: /^no unit has failed: .*demo.service/,
  },
  {
    is: "the other node out of reach",
    broken: "ip route add blackhole OTHER",
    mended: "ip route del blackhole OTHER",
    words: ["--set", "ports={worker: [22]}"],
    cause: /^ports.*connection to .*:22: no answer/,
  },
  {
    is: "a full volume",
    broken: "mkdir -p /srv/full; mount -t tmpfs -o size=64k none /srv/full",
    mended: "umount /srv/full",
    words: ["--set", "paths=/srv/full", "--set", "space=1M"],
    cause: /^free space \/srv\/full|^free space: /,
  },
  {
    is: "a wrong name of the other node",
    broken: "cp /etc/hosts /root/hosts; echo 192.0.2.99 n2 >>/etc/hosts",
    mended: "cp /root/hosts /etc/hosts",
    cause: /^names of nodes lead to them.*n2 \(192.0.2.99/,
  },
];

describe("kcore doctor on real nodes", () => {
  let lab: Lab;
  let n1: LabNode;
  let n2: LabNode;
  let bastion: Bastion;
  before(async () => {
    lab = await ownLab();
    [n1, n2] = (await lab.up([
      { name: "n1", kind: "debian", disks: [] },
      { name: "n2", kind: "debian", disks: [] },
    ])) as [LabNode, LabNode];
    bastion = await openBastion({
      "roster/lab.yaml": await labRoster(lab),
      "orchestrate/README.md": "",
    });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  for (const { is, broken, mended, words = [], cause } of rows)
    it(`names ${is} among its first two findings, and not once it is mended`, async () => {
      const text = (shell: string): string => shell.replaceAll("OTHER", n2.address);
      const ask = async (): Promise<readonly string[]> => {
        const { stdout, stderr } = await bastion.kcore(["doctor", "n1", ...words, "-o", "json"]);
        expect(stdout, stderr).to.match(/^\{/);
        return (JSON.parse(stdout) as { findings: readonly Finding[] }).findings.map((one) => one.cause);
      };
      await n1.exec(text(broken));
      try {
        const found = await ask();
        expect(
          found.slice(0, 2).some((one) => cause.test(one)),
          found.join("\n"),
        ).to.equal(true);
      } finally {
        await n1.exec(text(mended));
      }
      expect((await ask()).filter((one) => cause.test(one))).to.deep.equal([]);
    });

  it("verifies a node: it writes to a volume and leaves nothing there", async () => {
    await n1.exec("mkdir -p /srv/volume; mount -t tmpfs none /srv/volume");
    const words = [
      "orchestrate",
      "verify_node",
      "n1",
      "--set",
      "volumes=/srv/volume",
      "--set",
      "size=1",
      "--set",
      "units=ssh",
      "--set",
      "controllers=false",
    ];
    const verified = await bastion.kcore([...words, "--verbose"]);
    expect(verified.code, verified.stdout).to.equal(0);
    expect(verified.stdout).to.contain("/srv/volume: 1 MiB written, read and removed");
    expect((await n1.exec("ls -A /srv/volume; umount /srv/volume")).stdout).to.equal("");
    const refused = await bastion.kcore(words);
    expect(refused.code).to.equal(1);
    expect(refused.stdout).to.contain("not mounted: /srv/volume");
  });
});
