import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import { lookAt } from "#engine/program/look.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { inProject } from "#support/in-project.ts";
import { runDependencies, runRequest } from "#support/runs.ts";

const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const publicKey = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArS2542LG2F0s81ni7wfz
iwhBo32gD5Gn3MLZiTMMomNr6LCVmRaiRNrHHYKuHsLZ32pT4YVYqWYmSmc5bfyo
tWqEQu1f/XFycbtRdMwppvk1kkYdIFNEg0SCyNSmFHEH/sc41bk7rGCXS/ZLDbXQ
Z6ZplXDqxrj52W4Am4ttmuM2F1L/AU8ZnVVU14E+o95TAt9GLHsabn04WwvK8XlG
8r1xFJASRQNKOz5XXYtBJ3qJZtsiCDOatbCiCIj5OUFmjrfB30QncQbx9L7Xvx78
+Ln3/8fuiw3GG7bKRGZiKkyImtdzp4BJXYVmrS2cdgnwlY6lzxkZWYbQeCdyyQkc
MQIDAQAB
-----END PUBLIC KEY-----
`;
const storePath = "/nix/store/00000000000000000000000000000000-kcore";
/** The outputs of the actions of deploy_node. */
const outputs = {
  health: { controllers: [{ host: "192.0.2.1", port: 9090, healthy: true }] },
  authority: { cluster: "demo", root: "0123456789abcdef", controllers: ["192.0.2.1:9090"] },
  escrowKey: { publicKey },
  runtime: {
    storePath,
    narHash: `sha256:${"0".repeat(52)}`,
    source: [{ path: storePath, file: "/var/cache/kcore/k.nar.gz", sha256: "0".repeat(64), size: 1 }],
    arch: "x86_64",
  },
  image: { image: { file: "/var/cache/kcore/i.tar.gz", sha256: "0".repeat(64), size: 1 } },
  flake: {
    flake: { name: "n1", files: [{ path: "flake.nix", file: "/srv/flake.nix", sha256: "0".repeat(64), size: 1 }] },
  },
  preflight: { machine: { facts: { formerId: "", ready: "" } } },
  issue: { ca: pem, nodeCert: pem, controllerCert: pem, subCaCert: pem },
  register: { founds: false, join: ["192.0.2.2:9090"], joinKeys: ["k"], advertise: "192.0.2.1:9090" },
};

/** The steps of deploy_node, each with its stage, that need a runner on a node with these keys in the roster. */
async function stepsThatNeedRunner(node: string): Promise<readonly string[]> {
  const files = {
    "roster/r.yaml": `nodes:\n  n1: { address: 192.0.2.1, ${node} }\n  n2: { address: 192.0.2.2, roles: [controller] }\n`,
  };
  return inProject(files, async (project) => {
    const places = { project, shipped: shippedRoot(), actions: findAction, actionNames };
    const deps = runDependencies(fakeNodes({}), [], places);
    const roster = loadRoster(project);
    const run = { id: "r1", challenge: "c", time: "2026-11-21T06:57:24Z", revision: "f128abb" };
    const catalogue = openCatalogue(deps, { roster, run }, registry);
    const what = { kind: "orchestration", name: "deploy_node" } as const;
    const { stages } = await preparePlan({ request: runRequest({ what, on: "n1" }), deps, roster, catalogue, run });
    const scope = { node: roster.nodes.get("n1") as NodeEntry, stages: outputs };
    const found: string[] = [];
    for (const { id, when, task } of stages) {
      if (task.kind !== "apply" || when?.(scope) === false) continue;
      for (const draft of await task.expand(scope)) {
        const step = draft.render({ facts: { kernel: { release: "6.1.0" } }, steps: new Map() });
        if (draft.needs.facts) found.push(`${id}: ${draft.title} needs facts`);
        if (step.kind === "step" && !lookAt([{ key: "k", plan: step.plan }])) found.push(`${id}: ${draft.title}`);
      }
    }
    return found;
  });
}

describe("a look without a runner at deploy_node", () => {
  const disks = "disks: [{ serial: S0, use: os }, { serial: S1, use: volumes }, { serial: S2, use: volumes }]";
  const kinds: Readonly<Record<string, readonly string[]>> = {
    "roles: [worker]": [],
    "roles: [controller]": [],
    'vars: { onboardingListen: "192.0.2.1:8080" }': [],
    'vars: { installOs: debian, onboardingListen: "192.0.2.1:8080", onboardingKeep: true }, disks: [{ serial: S0, use: os }]':
      [],
    [`${disks}, vars: { installOs: debian }`]: [],
    [`${disks}, vars: { installOs: debian, encryptOs: true, encryptDisks: true }`]: [],
    [`${disks}, vars: { installOs: nixos }`]: [],
    [`${disks}, vars: { storageBackend: lvm, encryptDisks: true, diskUnlock: tpm2 }`]: [],
    [`${disks}, vars: { storageBackend: zfs }`]: ["disks: zfs module needs facts"],
  };
  for (const [kind, exceptions] of Object.entries(kinds))
    it(`probes all steps of a node with ${kind}`, async () =>
      expect(await stepsThatNeedRunner(kind)).to.deep.equal(exceptions));
});
