// Draws the charts of the page's data block in the colours of its style sheet, and redraws when those change.
(() => {
  "use strict";
  const block = JSON.parse(document.getElementById("chart-data").textContent);
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };
  const hasMouse = matchMedia("(pointer: fine)");

  // Replaces names of CSS variables by their values and leaves everything else.
  function coloured(value, style) {
    if (typeof value === "string") {
      return value.startsWith("--") ? style.getPropertyValue(value).trim() || value : value;
    }
    if (Array.isArray(value)) return value.map((inner) => coloured(inner, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner, style)]));
  }

  const paper = { width: 680, mostHeight: 240 }; // pixels; fits A4 and Letter within their margins

  function draw() {
    const isPaper = "paper" in document.documentElement.dataset;
    const style = getComputedStyle(document.documentElement);
    for (const [key, chart] of Object.entries(block.charts)) {
      const node = document.getElementById(key);
      const layout = coloured({ ...chart.layout, template: block.template }, style);
      layout.autosize = !isPaper;
      if (isPaper) {
        layout.width = paper.width;
        layout.height = Math.min(node.clientHeight, paper.mostHeight);
      }
      if (!hasMouse.matches) {
        // Touching a chart must scroll the page, not zoom the chart.
        layout.dragmode = false;
        layout.xaxis = { ...layout.xaxis, fixedrange: true };
        layout.yaxis = { ...layout.yaxis, fixedrange: true };
      }
      Plotly.react(node, coloured(chart.data, style), layout, config);
    }
  }

  // Before printing, the page still has the screen's width and colours, so charts are redrawn for paper.
  const closed = [];
  function toPaper() {
    for (const node of document.querySelectorAll("details:not([open])")) {
      node.open = true;
      closed.push(node);
    }
    document.documentElement.dataset.paper = "";
    draw();
  }
  function toScreen() {
    while (closed.length) closed.pop().open = false;
    delete document.documentElement.dataset.paper;
    draw();
  }

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", toScreen);
})();
