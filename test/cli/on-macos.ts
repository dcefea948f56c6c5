/** `node --import` of this file makes a process believe that it runs on macOS. */
Object.defineProperty(process, "platform", { value: "darwin" });
