import { expect } from "chai";
import { choosePods, NodeDrain, podName } from "#kubernetes/drain.ts";
import type { KubeApi } from "#kubernetes/api.ts";
import { rejectionOf } from "#support/rejection.ts";
import { KubeRefusal } from "#kubernetes/refusals.ts";
import type { Pod } from "#kubernetes/objects.ts";

const defaults = { deleteEmptyDirData: false, force: false };
const pod = (
  name: string,
  { metadata = {}, ...fields }: { metadata?: object; [field: string]: unknown } = {},
): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "web", ...owned("ReplicaSet"), ...metadata },
  ...fields,
});
const owned = (kind: string) => ({ ownerReferences: [{ kind, name: "owner", controller: true }] });
const emptyDir = { spec: { volumes: [{ name: "tmp", emptyDir: {} }, { name: "config" }] } };

const names = ({ leaving, staying, unpermitted }: ReturnType<typeof choosePods>) => ({
  evicted: leaving.map(podName),
  left: staying.map(({ pod: one }) => podName(one)),
  refused: unpermitted.map(({ pod: one, leave }) => `${podName(one)} ${leave}`),
});

describe("the pods that a drain evicts", () => {
  it("include pods that a controller starts elsewhere", () =>
    expect(names(choosePods([pod("a")], defaults))).to.deep.equal({ evicted: ["web/a"], left: [], refused: [] }));

  it("leave out pods of DaemonSets and mirrors of static pods", () => {
    const mirror = pod("static", {
      metadata: { annotations: { "kubernetes.io/config.mirror": "x" }, ownerReferences: [] },
    });
    const found = choosePods([pod("ds", { metadata: owned("DaemonSet") }), mirror], { ...defaults, force: true });
    expect(names(found)).to.deep.equal({ evicted: [], left: ["web/ds", "web/static"], refused: [] });
  });

  it("include pods without a controller or with an emptyDir only with permission", () => {
    const pods = [pod("alone", { metadata: { ownerReferences: [] } }), pod("dir", emptyDir)];
    const both = { evicted: [], left: [], refused: ["web/alone force", "web/dir deleteEmptyDirData"] };
    expect(names(choosePods(pods, defaults))).to.deep.equal(both);
    const leave = { deleteEmptyDirData: true, force: true };
    expect(names(choosePods(pods, leave))).to.deep.equal({ evicted: ["web/alone", "web/dir"], left: [], refused: [] });
    // An owner that is no controller starts no pods.
    const loose = pod("loose", { metadata: { ownerReferences: [{ kind: "Node", name: "n1" }] } });
    expect(names(choosePods([loose], defaults)).refused).to.deep.equal(["web/loose force"]);
  });

  it("include pods that have ended or are being deleted in any case", () => {
    const alone = { ownerReferences: [] };
    const pods = [
      pod("done", { metadata: alone, status: { phase: "Succeeded" } }),
      pod("broken", { ...emptyDir, status: { phase: "Failed" } }),
      pod("going", { metadata: { ...alone, deletionTimestamp: "2026-11-25T00:00:00Z" } }),
    ];
    expect(names(choosePods(pods, defaults)).evicted).to.deep.equal(["web/done", "web/broken", "web/going"]);
  });
});

describe("a drain at its time limit", () => {
  it("fails with the obstacle of each pod, also of one without a uid", async () => {
    const refused = { code: 429, message: "the budget of web allows no eviction", details: {} };
    const api = {
      list: () => Promise.resolve([pod("a")]),
      read: () => Promise.resolve({ resources: [] }),
      call: () => Promise.reject(new KubeRefusal(refused as never, { verb: "create" } as never)),
    } as unknown as KubeApi;
    const { signal } = new AbortController();
    const limits = { seconds: 0, signal, note: () => undefined };
    const { problems } = await rejectionOf(
      new NodeDrain(api, "n1", { ...defaults, gracePeriod: undefined } as never).finish(limits),
    );
    expect(problems[0]?.detail).to.contain("web/a: the budget of web allows no eviction");
  });
});
