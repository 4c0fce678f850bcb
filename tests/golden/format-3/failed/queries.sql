CREATE VIEW mean AS SELECT region, window.start AS start, golden_mean(x * x + 1) AS mean FROM stream
    GROUP BY region, window(ts, '30 seconds', '15 seconds');
