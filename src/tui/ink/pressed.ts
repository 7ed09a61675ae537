import type { RunUi } from "./run-ui.ts";
import type { ScreenDeed } from "./shared-keys.ts";

/** What a key does beyond the view itself. */
export type Deed =
  | ScreenDeed
  | { readonly type: "interrupt" }
  | { readonly type: "abort" }
  | { readonly type: "leave"; readonly why: "left" | "detached" }
  | { readonly type: "resume" }
  | { readonly type: "answer"; readonly id: string; readonly value: string }
  | { readonly type: "say"; readonly text: string }
  | { readonly type: "toggle" }
  | { readonly type: "seek"; readonly by: number }
  | { readonly type: "step"; readonly direction: 1 | -1 }
  | { readonly type: "speed"; readonly factor: number };

export interface Pressed {
  readonly ui: RunUi;
  readonly does?: Deed;
}
